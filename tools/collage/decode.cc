// decode.cc: what a decoder's inputs are for is read off their names, which exporters of text models agree on: tokens,
// a mask, positions, and past keys and values, which the results called `present` become in the next run.
#include "decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "cost/measure/timing.h"
#include "profile/process_memory.h"
#include "runtime/dispatch.h"

namespace collage::cli {
namespace {

bool Has(const std::string& name, std::string_view part) { return name.find(part) != std::string::npos; }

/// The result that becomes past `name` of the next run: "present.0.key" of "past_key_values.0.key".
std::string PresentOf(const std::string& name) {
  for (const std::string past : {"past_key_values", "past"}) {
    const size_t at = name.find(past);
    if (at != std::string::npos) return name.substr(0, at) + "present" + name.substr(at + past.size());
  }
  return "";
}

/// Integers of `dtype`.
Tensor Integers(const Shape& shape, DataType dtype, const std::function<int64_t(int64_t)>& value) {
  const Tensor tensor = Tensor::Empty(shape, dtype);
  DispatchType(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.data<T>()[i] = FromDouble<T>(static_cast<double>(value(i)));
    }
  });
  return tensor;
}

class Decoder {
 public:
  explicit Decoder(const std::string& file)
      : file_(file), executable_(Load(file)), machine_(executable_), params_(executable_.Parameters("main")) {
    const std::vector<std::string> results = executable_.ResultNames("main");
    num_results_ = results.size();
    for (size_t i = 0; i < params_.size(); ++i) roles_.push_back(RoleOf(params_[i], results));
    if (std::ranges::count(roles_, Role::kTokens, &Input::role) != 1) Fail("it has no one input of tokens", "");
    for (size_t i = 0; i < results.size(); ++i) {
      const bool is_kept = std::ranges::any_of(roles_, [&](const Input& input) { return input.result == i; });
      if (!is_kept && logits_ < 0) logits_ = static_cast<int>(i);
    }
    if (logits_ < 0) Fail("no result of it scores tokens", "");
  }

  const std::string& file() const { return file_; }
  int num_threads() const { return executable_.num_threads(); }

  /// Checks that buffers of known length have room for so many tokens.
  void CheckRoom(int64_t tokens) const {
    for (size_t i = 0; i < params_.size(); ++i) {
      const Dim length = TypeOf(i).shape().size() > 2 ? TypeOf(i).shape()[kLength] : Dim::Any();
      if (roles_[i].role != Role::kPast || length.is_any() || length.size() >= tokens) continue;
      Fail(fmt::format("input '{}' has room for {} tokens, {} are to be decoded", params_[i]->name(), length.size(),
                       tokens),
           "compile with a longer buffer, or give a smaller --prompt or --decode");
    }
  }

  /// Forgets all tokens and runs `prompt`.
  void Start(std::vector<int64_t> prompt) {
    seen_ = 0;
    kept_.assign(params_.size(), Tensor());
    Run(std::move(prompt));
  }
  /// Runs the likeliest token.
  void Step() { Run({next_}); }

 private:
  enum class Role : uint8_t { kTokens, kMask, kPositions, kPast };
  struct Input {
    Role role;
    std::optional<size_t> result;  ///< kPast: what it is in the next run
  };
  static constexpr size_t kLength = 2;  // the dimension of tokens in keys and values [batch, heads, tokens, size]

  static vm::Executable Load(const std::string& file) {
    if (vm::Executable::IsBytecode(file)) return vm::Executable::Load(file);
    collage::Executable::Load(file);  // says what is wrong with a file that is no executable at all
    throw Error(ErrorCategory::kInput,
                "it is compiled for one number of tokens; a decoder runs prompts and single tokens", file,
                "leave the dimension of tokens open, and name both sizes: --tune-at sequence_length=1,128");
  }

  [[noreturn]] void Fail(const std::string& message, const std::string& hint) const {
    throw Error(ErrorCategory::kInput, message, file_, hint);
  }

  const TensorTypeNode& TypeOf(size_t i) const { return *AsTensorType(params_[i]->type_annotation()); }

  Input RoleOf(const Var& param, const std::vector<std::string>& results) const {
    const TensorTypeNode* type = AsTensorType(param->type_annotation());
    const std::string& name = param->name();
    if (type == nullptr) Fail(fmt::format("input '{}' is no tensor", name), "");
    const auto present = std::ranges::find(results, PresentOf(name));
    if (present != results.end() && type->rank() == 4) {
      return {Role::kPast, static_cast<size_t>(present - results.begin())};
    }
    if (type->dtype().is_integer() && Has(name, "mask")) return {Role::kMask, {}};
    if (type->dtype().is_integer() && Has(name, "position")) return {Role::kPositions, {}};
    if (type->dtype().is_integer() && type->rank() == 2) return {Role::kTokens, {}};
    Fail(
        fmt::format("input '{}' is neither tokens, a mask, positions nor earlier keys or values", name),
        "earlier keys and values [batch, heads, tokens, size] are called past…, the results that they become present…");
  }

  /// The sizes of input `i`: batches have one row, all other symbolic sizes are `length`.
  Shape ShapeOf(size_t i, int64_t length) const {
    Shape shape;
    for (const Dim& dim : TypeOf(i).shape()) {
      shape.push_back(!dim.is_any() ? dim.size() : shape.empty() && TypeOf(i).rank() > 1 ? 1 : length);
    }
    return shape;
  }

  Value ValueOf(size_t i, const std::vector<int64_t>& tokens) {
    const auto count = static_cast<int64_t>(tokens.size());
    const DataType dtype = TypeOf(i).dtype();
    switch (roles_[i].role) {
      case Role::kTokens:
        return Integers(ShapeOf(i, count), dtype, [&](int64_t at) { return tokens.at(static_cast<size_t>(at)); });
      case Role::kMask:
        return Integers(ShapeOf(i, seen_ + count), dtype, [&](int64_t at) { return at < seen_ + count; });
      case Role::kPositions: return Integers(ShapeOf(i, count), dtype, [&](int64_t at) { return seen_ + at; });
      case Role::kPast: break;
    }
    if (!kept_[i].defined()) kept_[i] = Tensor::Zeros(ShapeOf(i, 0), dtype);
    return kept_[i];
  }

  void Run(const std::vector<int64_t>& tokens) {
    std::vector<Value> args;
    for (size_t i = 0; i < params_.size(); ++i) args.push_back(ValueOf(i, tokens));
    // The next keys and values replace these, in one memory where the executable can.
    std::vector<Tensor> places(num_results_);
    for (size_t i = 0; i < params_.size(); ++i) {
      if (roles_[i].result) places[*roles_[i].result] = args[i].tensor();
    }
    const std::vector<Tensor> results =
        FlattenTensors(machine_.Invoke("main", std::move(args), {.destinations = places}));
    for (size_t i = 0; i < params_.size(); ++i) {
      if (roles_[i].result) kept_[i] = results.at(*roles_[i].result);
    }
    seen_ += static_cast<int64_t>(tokens.size());
    next_ = Likeliest(results.at(static_cast<size_t>(logits_)));
  }

  /// The largest of the last row.
  static int64_t Likeliest(const Tensor& logits) {
    const int64_t words = logits.shape().empty() ? 0 : logits.shape().back();
    const int64_t first = logits.num_elements() - words;
    int64_t best = 0;
    DispatchType(logits.dtype(), [&]<typename T>() {
      const T* row = logits.data<T>() + first;
      for (int64_t i = 1; i < words; ++i) {
        if (ToDouble(row[i]) > ToDouble(row[best])) best = i;
      }
    });
    return best;
  }

  std::string file_;
  vm::Executable executable_;
  vm::Machine machine_;
  std::vector<Var> params_;
  std::vector<Input> roles_;
  size_t num_results_ = 0;
  int logits_ = -1;
  std::vector<Tensor> kept_;  ///< keys and values of the tokens so far, by parameter
  int64_t seen_ = 0;
  int64_t next_ = 0;
};

Fact RowOf(const Decoder& decoder, const DecodeArguments& arguments, const Samples& prompt, const Samples& token,
           double first) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "executable", decoder.file()),
       Fact::Count("threads", "threads", decoder.num_threads()).Detail(),
       Fact::Seconds("first_token_seconds", "first token", prompt.p50()),
       Fact::Number("prompt_per_second", "prompt tokens/s", arguments.prompt / prompt.p50(), Unit::kPerSecond),
       Fact::Seconds("token_seconds", "token", token.p50()), Fact::Seconds("token_p90_seconds", "p90", token.p90()),
       Fact::Number("tokens_per_second", "tokens/s", 1 / token.p50(), Unit::kPerSecond),
       Fact::Number("to_first", "to first", token.p50() / first, Unit::kFineRatio)});
}

}  // namespace

Fact DecodeFacts(const DecodeArguments& arguments) {
  constexpr int kPrompts = 5;
  constexpr int64_t kCommonTokens = 100;  // there are at least as many
  std::vector<int64_t> prompt;
  for (int i = 0; i < arguments.prompt; ++i) prompt.push_back(i * 7 % kCommonTokens);
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (const std::string& file : arguments.executables) {
    decoders.push_back(std::make_unique<Decoder>(file));
    decoders.back()->CheckRoom(arguments.prompt + arguments.tokens);
    decoders.back()->Start(prompt);  // kernels are loaded
    decoders.back()->Step();
  }
  std::vector<std::function<void()>> starts, steps;
  for (const std::unique_ptr<Decoder>& decoder : decoders) {
    starts.emplace_back([&] { decoder->Start(prompt); });
    steps.emplace_back([&] { decoder->Step(); });
  }
  const std::vector<Samples> prompts = TimeInterleaved(starts, kPrompts);
  const std::vector<Samples> tokens = TimeInterleaved(steps, arguments.tokens);
  std::vector<Fact> rows;
  for (size_t i = 0; i < decoders.size(); ++i) {
    rows.push_back(RowOf(*decoders[i], arguments, prompts[i], tokens[i], tokens[0].p50()));
  }
  std::vector<Fact> facts{Fact::Line("", {Fact::Count("prompt", "prompt", arguments.prompt),
                                          Fact::Count("tokens", "tokens", arguments.tokens)})
                              .Says("a prompt of {prompt} tokens, then {tokens} one by one, the executables in turns"),
                          Fact::Table("decoders", "executables", std::move(rows))
                              .Columns({{"executable", "{name}"},
                                        {"first token", "{first_token_seconds}"},
                                        {"prompt tokens/s", "{prompt_per_second}"},
                                        {"token", "{token_seconds}"},
                                        {"p90", "{token_p90_seconds}"},
                                        {"tokens/s", "{tokens_per_second}"},
                                        {"to first", "{to_first}"}})};
  if (const std::optional<int64_t> peak = PeakBytes()) {
    facts.push_back(
        Fact::Line("", {Fact::Bytes("peak_bytes", "memory", *peak)}).Says("{peak_bytes} of memory at most"));
  }
  return Fact::Report(1, std::move(facts));
}

}  // namespace collage::cli
