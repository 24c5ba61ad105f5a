// compile.cc: splits a partition into stages and puts the kernel together.
#include <algorithm>
#include <span>
#include <unordered_set>

#include "backends/native/compiler/contraction/attention_loops.h"
#include "backends/native/compiler/convolution/depthwise_chain_loops.h"
#include "backends/native/compiler/driver/called_composites.h"
#include "backends/native/compiler/driver/codegen.h"
#include "backends/native/compiler/driver/dynamic_partition.h"
#include "backends/native/compiler/driver/operator_table.h"
#include "backends/native/compiler/driver/placed_calls.h"
#include "backends/native/compiler/driver/split_outputs.h"
#include "backends/native/compiler/emit/buffer_views.h"
#include "backends/native/compiler/gpu/gpu_code.h"
#include "backends/native/compiler/kernels/extern_call.h"
#include "backends/native/compiler/reduction/reduction.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/materialise.h"
#include "backends/native/operators.h"
#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"

namespace collage::native {
namespace {

const CallNode* AsOp(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr ? call : nullptr;
}

const OperatorRow* StageOf(const Expr& expr) {
  const CallNode* call = AsOp(expr);
  return call == nullptr ? nullptr : FindStage(call->op()->name);
}

/// Returns the writer of the fields of an operator with several results; null for all others.
FieldsFn FieldsOf(const Expr& expr) {
  const CallNode* call = AsOp(expr);
  if (call == nullptr || AsTupleType(call->checked_type()) == nullptr) return nullptr;
  const OperatorRow* row = FindOperator(call->op()->name);
  return row == nullptr ? nullptr : row->fields;
}

/// Writes the loops of one request.
class PartitionCompiler {
 public:
  PartitionCompiler(const PartitionRequest& request, const NativeOptions& options)
      : request_(request),
        body_(CutAtCalls(request.function->body(), options.libraries)),
        state_(TargetOf(options), request.num_threads, WithSchedule(options, request)),
        attention_finder_(body_.whole),
        chain_finder_(body_.whole) {}

  LoweredPartition Run() {
    AddInputs();
    AddOutputs(body_.rest);
    num_outputs_ = outputs_.size();
    for (const PlacedCall& call : PlaceCalls(state_, request_, body_.calls, outputs_)) CompileCall(call);
    for (size_t i = 0; i < num_outputs_; ++i) {
      if (!is_split_.contains(i) && !CompileSplit(i)) CompileOutput(i);
    }
    const bool keeps_narrow = KeepsNarrow(request_.layouts);
    const DataType factors = state_.options.factors;
    if (state_.options.narrows_factors() && state_.num_narrow == 0 && !keeps_narrow) {
      throw Error(ErrorCategory::kUnsupported, "nothing in it is computed in " + factors.ToString());
    }
    if (state_.options.rounds_data && state_.num_narrow == 0) {
      throw Error(ErrorCategory::kUnsupported, "no product with packed weights is in it");
    }
    if (state_.options.keeps_float16 && !keeps_narrow) {
      throw Error(ErrorCategory::kUnsupported, "nothing that it reads or writes is kept as float16");
    }
    return {state_.Module(static_cast<int>(request_.layouts.outputs.size())), state_.constants,
            static_cast<size_t>(state_.workspace_bytes)};
  }

  /// After Run: schedules one step from the request's.
  std::vector<Schedule> OtherSchedules() const { return Neighbours(state_.space, Schedule::Parse(request_.schedule)); }

 private:
  static NativeOptions WithSchedule(NativeOptions options, const PartitionRequest& request) {
    options.schedule = options.schedule.With(Schedule::Parse(request.schedule));
    return options;
  }

  void AddInputs() {
    for (const Var& param : request_.function->params()) {
      const TensorTypeNode* type = AsTensorType(param->checked_type());
      if (type == nullptr) throw Error(ErrorCategory::kUnsupported, "a parameter that is no tensor");
      const Shape shape = type->static_shape();
      const Layout layout = request_.layouts.inputs.at(static_cast<size_t>(state_.num_inputs));
      const DataType stored = StoredType(layout, type->dtype());
      state_.expressions.SetBuffer(param,
                                   {InputRef(state_.num_inputs++), 0, stored, shape, LayoutStrides(shape, layout)});
    }
    std::unordered_map<const ExprNode*, int> uses{{body_.whole.get(), 1}};
    PostOrder(body_.whole, [&](const Expr& expr) {
      for (const Expr& child : Children(expr)) ++uses[child.get()];
    });
    for (const Var& param : request_.function->params()) {
      if (uses[param.get()] == 1) state_.read_once.insert(param.get());
    }
  }

  /// The tensors that `expr` is made of, in order.
  void AddOutputs(const Expr& expr) {
    if (AsTupleType(expr->checked_type()) != nullptr) {
      const TupleNode* tuple = As<TupleNode>(expr);
      const size_t count = AsTupleType(expr->checked_type())->fields().size();
      for (size_t i = 0; i < count; ++i) {
        const Expr field = tuple != nullptr ? tuple->fields()[i] : MakeTupleGetItem(expr, static_cast<int>(i));
        InferType(field);
        AddOutputs(field);
      }
      return;
    }
    const TensorTypeNode* tensor = AsTensorType(expr->checked_type());
    const Shape shape = tensor->static_shape();
    const auto number = static_cast<int>(outputs_.size());
    const Layout layout = request_.layouts.outputs.at(outputs_.size());
    outputs_.push_back(
        {expr, {OutputRef(number), 0, StoredType(layout, tensor->dtype()), shape, LayoutStrides(shape, layout)}});
  }

  void CompileCall(const PlacedCall& placed) {
    for (const size_t argument : placed.computed) CompileOutput(argument);
    if (NumElements(placed.output.shape) == 0) return;
    EmitExternCall(state_, placed.called->library->name, placed.call, placed.inputs, placed.output);
  }

  /// Calls in post-order whose value is not in memory yet, from `root` down.
  std::vector<Expr> Pending(const Expr& root) const {
    std::vector<Expr> order;
    std::unordered_set<const ExprNode*> seen;
    const std::function<void(const Expr&)> visit = [&](const Expr& expr) {
      if (!seen.insert(expr.get()).second) return;
      if (state_.expressions.FindBuffer(expr) != nullptr) return;
      for (const Expr& child : Children(expr)) visit(child);
      order.push_back(expr);
    };
    visit(root);
    return order;
  }

  /// Whether `root` is made, element by element, of the elements of rows and what the reduction `anchor` makes of each
  /// row.
  static bool IsOverRows(const Expr& root, const Expr& anchor) {
    const CallNode& reduction = *As<CallNode>(anchor);
    const std::string& name = reduction.op()->name;
    if (name != "mean" && name != "sum" && name != "max" && name != "min") return false;
    const Shape shape = ShapeOf(root);
    Shape rows = shape;
    if (rows.size() < 2 || ShapeOf(reduction.args()[0]) != shape) return false;
    rows.back() = 1;
    std::unordered_set<const ExprNode*> above{anchor.get()};
    bool answer = ShapeOf(anchor) == rows;
    PostOrder(root, [&](const Expr& expr) {
      const std::vector<Expr> children = Children(expr);
      const auto is_above = [&](const Expr& child) { return above.contains(child.get()); };
      if (expr == anchor || std::ranges::none_of(children, is_above)) return;
      above.insert(expr.get());
      const CallNode* call = AsOp(expr);
      const bool keeps_place = call != nullptr && KeepsPlaces(*call->op());
      answer = answer && keeps_place && AsTensorType(expr->checked_type()) != nullptr;
      if (answer) answer = ShapeOf(expr) == shape || ShapeOf(expr) == rows;
    });
    return answer && above.contains(root.get()) && root != anchor;
  }

  /// Whether an output that is none of `owners` needs `expr` itself, and not only what they are.
  bool IsNeededBeside(const std::vector<size_t>& owners, const Expr& expr) const {
    const auto is_owned = [&](const Expr& node) {
      return std::ranges::any_of(owners, [&](size_t owner) { return outputs_[owner].expr == node; });
    };
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (std::ranges::find(owners, i) != owners.end()) continue;
      bool found = false;
      std::unordered_set<const ExprNode*> seen;
      const std::function<void(const Expr&)> visit = [&](const Expr& node) {
        if (is_owned(node) || found || !seen.insert(node.get()).second) return;
        found = node == expr;
        for (const Expr& child : Children(node)) visit(child);
      };
      visit(outputs_[i].expr);
      if (found) return true;
    }
    return false;
  }

  /// Returns the parts of `body` that need stages, in order, and those read so often that they are computed before. The
  /// first product and the softmax of attention are computed with its last product.
  std::vector<Expr> AnchorsOf(const Expr& body) {
    std::vector<Expr> anchors;
    // Values computed by sampling. Sampling them again would multiply the work, so they get a stage.
    std::unordered_set<const ExprNode*> made_of_taps;
    for (const Expr& expr : Pending(body)) {
      const bool reads_many = ReadsManyTaps(expr);
      if (reads_many && made_of_taps.erase(As<CallNode>(expr)->args()[0].get()) > 0) {
        anchors.push_back(As<CallNode>(expr)->args()[0]);
      }
      const auto is_made_of_taps = [&](const Expr& child) { return made_of_taps.contains(child.get()); };
      if (reads_many || std::ranges::any_of(Children(expr), is_made_of_taps)) made_of_taps.insert(expr.get());
      if (FieldsOf(expr) == nullptr && (StageOf(expr) == nullptr || !NeedsStage(expr, body))) continue;
      anchors.push_back(expr);
      made_of_taps.erase(expr.get());
      AddChain(expr, anchors);
      // Weights would have to be paired first.
      if (state_.options.narrows_factors()) continue;
      const Result<Attention> attention = attention_finder_.Find(expr);
      if (!attention.ok()) continue;
      std::erase_if(anchors, [&](const Expr& one) { return one == attention->scores || one == attention->softmax; });
      attentions_.emplace(expr.get(), *attention);
    }
    return anchors;
  }

  /// Whether it makes each element of several elements of its data.
  static bool ReadsManyTaps(const Expr& expr) {
    const CallNode* call = AsOp(expr);
    if (call == nullptr) return false;
    const bool is_sampling = call->op()->name == "image.grid_sample" || call->op()->name.starts_with("image.resize");
    return is_sampling && !call->attrs().String("method").starts_with("nearest");
  }

  /// If `expr` is the last convolution of a chain, the others are computed with it.
  void AddChain(const Expr& expr, std::vector<Expr>& anchors) {
    Result<DepthwiseChain> chain = chain_finder_.Find(expr);
    // Libraries compute products as a whole.
    if (!chain.ok() || state_.options.calls_for_tiles()) return;
    if (!ReadsRing(state_, *chain)) chain->expansion = chain->expanded = nullptr;
    if (chain->expansion == nullptr && chain->projection == nullptr) return;
    std::erase_if(anchors,
                  [&](const Expr& one) { return one != expr && (one == chain->expansion || one == chain->depthwise); });
    chains_.emplace(expr.get(), *chain);
  }

  /// If `body` only moves the result of attention, attention writes it to its destination.
  void MoveInPlace(const std::vector<Expr>& anchors, Expr& body, Buffer& buffer) const {
    if (anchors.empty() || !attentions_.contains(anchors.back().get())) return;
    const std::optional<Buffer> place = PlaceOf(anchors.back(), body, buffer);
    if (!place || !LayoutFits(*StageOf(anchors.back()), *place)) return;
    body = anchors.back();
    buffer = *place;
  }

  void Emit(const OperatorRow& row, const StageOutput& output) {
    if (NumElements(output.buffer.shape) == 0) return;
    const auto attention = attentions_.find(output.result.get());
    if (attention != attentions_.end()) return EmitAttention(state_, attention->second, output);
    const auto chain = chains_.find(output.result.get());
    if (chain != chains_.end()) return EmitDepthwiseChain(state_, chain->second, output);
    row.stage(state_, *As<CallNode>(output.result), output);
  }

  /// Writes the stage of a product whose results, from output `index` on, are this output and others, if that can be
  /// done at once.
  bool CompileSplit(size_t index) {
    const std::optional<SplitOutput> split =
        FindSplit(std::span(outputs_).first(num_outputs_), index, state_.emitter.lanes());
    if (!split || NumElements(split->buffer.shape) == 0) return false;
    const std::vector<Expr> anchors = AnchorsOf(split->whole);
    if (anchors.size() != 1 || StageOf(anchors[0]) == nullptr || FieldsOf(anchors[0]) != nullptr) return false;
    const Expr& anchor = anchors[0];
    const OperatorRow& row = *StageOf(anchor);
    const bool is_product = As<CallNode>(anchor)->op()->pattern == OpPatternKind::kOutEWiseFusable;
    if (!is_product || !row.fuses_epilogue || !IsEpilogue(split->whole, anchor)) return false;
    if (!LayoutFits(row, split->buffer) || IsNeededBeside(split->outputs, anchor)) return false;
    const auto is_there = [&](size_t output) {
      return state_.expressions.FindBuffer(outputs_[output].expr) != nullptr;
    };
    if (std::ranges::any_of(split->outputs, is_there)) return false;
    Emit(row, {anchor, split->whole, split->buffer});
    for (const size_t output : split->outputs) {
      state_.expressions.SetBuffer(outputs_[output].expr, outputs_[output].buffer);
      is_split_.insert(output);
    }
    return true;
  }

  void CompileOutput(size_t index) {
    const Expr whole = outputs_[index].expr;
    Expr body = whole;
    Buffer buffer = outputs_[index].buffer;
    const bool is_ready = state_.expressions.FindBuffer(body) != nullptr;
    // A reshape of the result is the same memory.
    while (!is_ready && AsOp(body) != nullptr && AsOp(body)->op()->is_reshape && buffer.is_contiguous() &&
           state_.expressions.FindBuffer(body) == nullptr) {
      body = As<CallNode>(body)->args()[0];
      buffer.shape = ShapeOf(body);
      buffer.strides = LayoutStrides(buffer.shape, Layout::kPlain);
    }
    const std::vector<Expr> anchors = AnchorsOf(body);
    MoveInPlace(anchors, body, buffer);
    bool is_done = NumElements(buffer.shape) == 0;
    for (size_t i = 0; i < anchors.size() && !is_done; ++i) {
      const Expr& anchor = anchors[i];
      if (state_.expressions.FindBuffer(anchor) != nullptr) continue;
      if (FieldsOf(anchor) != nullptr) {
        CompileFields(anchor);
        continue;
      }
      if (StageOf(anchor) == nullptr) {
        Materialise(state_, anchor, Layout::kPlain);
        continue;
      }
      const OperatorRow& row = *StageOf(anchor);
      const bool is_last = i + 1 == anchors.size();
      const bool layout_fits = LayoutFits(row, buffer) && TypeFits(row, anchor, buffer);
      const bool is_fused = is_last && layout_fits && IsEpilogue(body, anchor) &&
                            (row.fuses_epilogue || anchor == body) && !IsNeededBeside({index}, anchor);
      if (is_fused || (is_last && layout_fits && anchor == body)) {
        Emit(row, {anchor, body, buffer});
        is_done = true;
      } else if (is_last && !IsNeededBeside({index}, anchor) && IsOverRows(body, anchor) &&
                 EmitOverRows(state_, *As<CallNode>(anchor), {anchor, body, buffer})) {
        is_done = true;
      } else {
        const Buffer own = state_.AddWorkspace(ShapeOf(anchor), NaturalLayout(anchor), TensorTypeOf(anchor).dtype());
        Emit(row, {anchor, anchor, own});
        state_.expressions.SetBuffer(anchor, own);
      }
    }
    const Buffer* own = state_.expressions.FindBuffer(state_.expressions.FindBuffer(whole) != nullptr ? whole : body);
    const bool is_in_place = own != nullptr && own->ref == buffer.ref && own->offset_bytes == buffer.offset_bytes;
    if (!is_done && !is_in_place) EmitPointwise(state_, body, buffer);
    // Later outputs that need this one read it from there.
    if (state_.expressions.FindBuffer(whole) == nullptr) state_.expressions.SetBuffer(whole, outputs_[index].buffer);
    if (state_.expressions.FindBuffer(body) == nullptr) state_.expressions.SetBuffer(body, buffer);
  }

  static bool LayoutFits(const OperatorRow& row, const Buffer& buffer) {
    if (row.lanes == ResultLanes::kAny || buffer.shape.empty()) return true;
    const size_t axis = row.lanes == ResultLanes::kChannels ? 1 : buffer.shape.size() - 1;
    return axis >= buffer.shape.size() || buffer.shape[axis] == 1 || buffer.strides[axis] == 1;
  }

  /// Results that are read again while they are made are not kept in another type than theirs.
  static bool TypeFits(const OperatorRow& row, const Expr& anchor, const Buffer& buffer) {
    return row.fuses_epilogue || buffer.dtype == TensorTypeOf(anchor).dtype();
  }

  /// Joined tensors inside an expression are read in place when they are small; all other stages have loops that no
  /// expression could hold.
  static bool NeedsStage(const Expr& expr, const Expr& body) {
    const std::string& name = As<CallNode>(expr)->op()->name;
    const bool is_join = name == "concatenate" || name == "stack";
    constexpr int64_t kSmall = 64;
    return !is_join || expr == body || NumElements(ShapeOf(expr)) > kSmall;
  }

  /// How a stage's result lies best in the workspace.
  Layout NaturalLayout(const Expr& anchor) const {
    const Shape shape = ShapeOf(anchor);
    if (shape.size() < 3 || shape.size() > 5) return Layout::kPlain;
    if (StageOf(anchor)->lanes == ResultLanes::kChannels) return Layout::kChannelsLast;
    if (StageOf(anchor)->lanes == ResultLanes::kLast) return Layout::kPlain;
    Expr first = As<CallNode>(anchor)->args()[0];
    if (const TupleNode* tuple = As<TupleNode>(first)) first = tuple->fields()[0];
    const Buffer* buffer = state_.expressions.FindBuffer(first);
    if (buffer == nullptr || buffer->shape.size() != shape.size() || buffer->shape[1] == 1) return Layout::kPlain;
    return buffer->strides[1] == 1 ? Layout::kChannelsLast : Layout::kPlain;
  }

  /// All fields of an operator: in the outputs where they are such, else in the workspace.
  void CompileFields(const Expr& expr) {
    std::vector<Buffer> buffers;
    const auto& fields = AsTupleType(expr->checked_type())->fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      const TensorTypeNode* type = AsTensorType(fields[i]);
      Buffer buffer;
      for (const PlacedValue& output : outputs_) {
        const TupleGetItemNode* item = As<TupleGetItemNode>(output.expr);
        const bool is_field = item != nullptr && item->tuple() == expr && item->index() == static_cast<int>(i);
        const bool fits = output.buffer.is_contiguous() && output.buffer.dtype == type->dtype();
        if (is_field && fits) buffer = output.buffer;
      }
      if (!buffer.exists()) buffer = state_.AddWorkspace(type->static_shape(), Layout::kPlain, type->dtype());
      state_.expressions.SetFieldBuffer(expr, static_cast<int>(i), buffer);
      buffers.push_back(buffer);
    }
    FieldsOf(expr)(state_, *As<CallNode>(expr), buffers);
    state_.expressions.SetBuffer(expr, buffers[0]);  // marks it as done
  }

  const PartitionRequest& request_;
  CutBody body_;  ///< the function's, written out
  PartitionState state_;
  AttentionFinder attention_finder_;
  std::unordered_map<const ExprNode*, Attention> attentions_;  ///< by their results
  DepthwiseChainFinder chain_finder_;
  std::unordered_map<const ExprNode*, DepthwiseChain> chains_;  ///< by their last convolutions
  std::vector<PlacedValue> outputs_;                            ///< the partition's results, then arguments of calls
  size_t num_outputs_ = 0;                                      ///< how many of these are results
  std::unordered_set<size_t> is_split_;  ///< numbers of results that were written as pieces of one value
};

/// Throws where the processor that code is for cannot do what `options` ask for.
void CheckTarget(const NativeOptions& options) {
  if (!options.narrows_factors() && !options.rounds_data && options.libraries.empty()) return;
  const TargetInfo target = TargetOf(options);
  if (options.narrows_factors() && !target.has_bfloat16_products) {
    throw Error(ErrorCategory::kUnsupported, "this processor has no products of bfloat16 (AVX512-BF16)");
  }
  if (options.rounds_data && !target.has_byte_products && !target.has_byte_pairs) {
    throw Error(ErrorCategory::kUnsupported, "this processor has no products of bytes (SSSE3, AVX2 or VNNI)");
  }
  if (!options.libraries.empty() && !target.is_this_kind) {
    throw Error(ErrorCategory::kUnsupported, "libraries are called by code for this kind of machine only");
  }
}

}  // namespace
}  // namespace collage::native

extern "C" void collage_relay_to_tir(const collage::PartitionRequest& request,
                                     const collage::native::NativeOptions& options,
                                     collage::Result<collage::LoweredPartition>& result) {
  try {
    collage::native::CheckTarget(options);
    result = collage::HasDynamicSizes(request.function) ? collage::native::LowerDynamicPartition(request, options)
                                                        : collage::native::PartitionCompiler(request, options).Run();
  } catch (const collage::Error& error) {
    result = collage::Reason{error.message(), "native"};
  }
}

extern "C" void collage_native_schedules(const collage::PartitionRequest& request,
                                         const collage::native::NativeOptions& options,
                                         collage::Result<std::vector<std::string>>& result) {
  try {
    collage::native::PartitionCompiler compiler(request, options);
    compiler.Run();
    std::vector<std::string> texts;
    for (const collage::native::Schedule& schedule : compiler.OtherSchedules()) texts.push_back(schedule.ToString());
    result = std::move(texts);
  } catch (const collage::Error& error) {
    result = collage::Reason{error.message(), "native"};
  }
}

extern "C" void collage_tir_to_runtime(const collage::LoweredPartition& lowered,
                                       const collage::native::NativeOptions& options,
                                       collage::Result<collage::CompiledPartition>& result) {
  try {
    if (options.is_for_gpu()) {
      result = collage::native::CompileForGpu(lowered, options);
      return;
    }
    result = collage::CompiledPartition{"object", collage::native::CompileMlir(lowered.mlir, options),
                                        lowered.constants, lowered.workspace_bytes, lowered.mlir};
  } catch (const collage::Error& error) {
    result = collage::Reason{error.message(), "native"};
  }
}

extern "C" void collage_native_listings(const collage::CompiledPartition& compiled,
                                        const collage::native::NativeOptions& options,
                                        std::vector<collage::Listing>& result) {
  if (options.is_for_gpu()) {
    result = collage::native::GpuListings(compiled);
    return;
  }
  collage::native::CodeListing listing = collage::native::ListCode(compiled.source, options);
  result = {{"mlir", compiled.source}, {"ll", std::move(listing.llvm_ir)}, {"s", std::move(listing.assembly)}};
}
