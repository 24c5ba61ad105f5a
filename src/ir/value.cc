// value.cc: run-time values; all walks use an explicit stack, since lists are as deep as they are long.
#include "collage/ir/value.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <unordered_set>

#include "collage/support/error.h"

namespace collage {

struct Value::Node {
  Kind kind;
  Tensor tensor;
  std::vector<Value> fields;
  Constructor constructor;  // of data
  Expr code;                // of a function
  int index = 0;

  explicit Node(Kind kind) : kind(kind) {}
  ~Node();
};

namespace {

/// Nodes whose last owner is being destroyed on this thread, while the outermost destructor frees them in a loop. A
/// pointer, since values in static storage are destroyed after the thread's own objects.
thread_local std::vector<Value>* pending = nullptr;

}  // namespace

Value::Node::~Node() {
  std::vector<Value> values;
  std::vector<Value>& last_owned = pending != nullptr ? *pending : values;
  for (Value& field : fields) {
    if (field.node_.use_count() == 1) {
      last_owned.push_back(std::move(field));
    } else {
      field.node_.reset();  // now, since the same value may come again
    }
  }
  if (pending != nullptr || values.empty()) return;
  pending = &values;
  while (!values.empty()) {
    Value last = std::move(values.back());
    values.pop_back();
  }
  pending = nullptr;
}

Value::Value(Tensor tensor) : node_(std::make_shared<Node>(Kind::kTensor)) { node_->tensor = std::move(tensor); }

Value Value::Tuple(std::vector<Value> fields) {
  auto node = std::make_shared<Node>(Kind::kTuple);
  node->fields = std::move(fields);
  return Value(std::move(node));
}

Value Value::Data(Constructor constructor, std::vector<Value> fields) {
  auto node = std::make_shared<Node>(Kind::kData);
  node->constructor = std::move(constructor);
  node->fields = std::move(fields);
  return Value(std::move(node));
}

Value Value::Reference(Value content) {
  auto node = std::make_shared<Node>(Kind::kReference);
  node->fields.push_back(std::move(content));
  return Value(std::move(node));
}

Value Value::Function(Expr code, int index, std::vector<Value> captured) {
  auto node = std::make_shared<Node>(Kind::kFunction);
  node->code = std::move(code);
  node->index = index;
  node->fields = std::move(captured);
  return Value(std::move(node));
}

Value::Kind Value::kind() const { return node_ ? node_->kind : Kind::kNone; }

const Value::Node& Value::Get(Kind wanted, const char* what) const {
  COLLAGE_CHECK(kind() == wanted) << "a value is asked for its " << what << ", but is of kind "
                                  << static_cast<int>(kind());
  return *node_;
}

const Tensor& Value::tensor() const { return Get(Kind::kTensor, "tensor").tensor; }

const std::vector<Value>& Value::fields() const {
  COLLAGE_CHECK(kind() == Kind::kTuple || kind() == Kind::kData || kind() == Kind::kFunction)
      << "a value is asked for its fields, but is of kind " << static_cast<int>(kind());
  return node_->fields;
}

const Constructor& Value::constructor() const { return Get(Kind::kData, "constructor").constructor; }

const Value& Value::content() const { return Get(Kind::kReference, "content").fields[0]; }

void Value::set_content(Value content) const {
  Get(Kind::kReference, "content");
  node_->fields[0] = std::move(content);
}

const Expr& Value::code() const { return Get(Kind::kFunction, "code").code; }

int Value::index() const { return Get(Kind::kFunction, "index").index; }

// ---- references ----

Value ReferencePool::Create(Value content) {
  if (cells_.size() >= sweep_at_) {
    std::erase_if(cells_, [](const auto& cell) { return cell.expired(); });
    sweep_at_ = std::max<size_t>(1024, cells_.size() * 2);
  }
  Value cell = Value::Reference(std::move(content));
  cells_.push_back(cell.node_);
  return cell;
}

void ReferencePool::EmptyAllBut(const Value& reachable) {
  std::unordered_set<const Value::Node*> reached;
  std::vector<const Value::Node*> stack{reachable.node_.get()};
  while (!stack.empty()) {
    const Value::Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || !reached.insert(node).second) continue;
    for (const Value& field : node->fields) stack.push_back(field.node_.get());
  }
  for (const std::weak_ptr<Value::Node>& weak : cells_) {
    const std::shared_ptr<Value::Node> cell = weak.lock();
    if (cell && reached.count(cell.get()) == 0) cell->fields[0] = Value();
  }
  cells_.clear();
}

// ---- tensors and types ----

std::vector<Tensor> FlattenTensors(const Value& value) {
  std::vector<Tensor> tensors;
  std::vector<const Value*> stack{&value};
  while (!stack.empty()) {
    const Value& next = *stack.back();
    stack.pop_back();
    if (next.kind() == Value::Kind::kTensor) {
      tensors.push_back(next.tensor());
      continue;
    }
    if (next.kind() != Value::Kind::kTuple) {
      throw Error(ErrorCategory::kUnsupported, "expected tensors or tuples of tensors, got " + ToString(next));
    }
    for (size_t i = next.fields().size(); i-- > 0;) stack.push_back(&next.fields()[i]);
  }
  return tensors;
}

Value UnflattenTensors(const Type& type, const std::function<Tensor()>& next) {
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr) return next();
  std::vector<Value> fields;
  for (const Type& field : tuple->fields()) fields.push_back(UnflattenTensors(field, next));
  return Value::Tuple(std::move(fields));
}

namespace {

Type TypeOf(const Value& value, int depth) {
  // Deeper than any type that was written down: bytecode can make such tuples, and types are walked by recursion.
  constexpr int kDeepest = 1000;
  if (value.kind() == Value::Kind::kTensor) return TensorType(value.tensor().shape(), value.tensor().dtype());
  if (value.kind() != Value::Kind::kTuple || depth == kDeepest) return nullptr;
  std::vector<Type> fields;
  for (const Value& field : value.fields()) {
    fields.push_back(TypeOf(field, depth + 1));
    if (!fields.back()) return nullptr;
  }
  return TupleType(std::move(fields));
}

}  // namespace

Type TypeOf(const Value& value) { return TypeOf(value, 0); }

namespace {

bool ShapeFits(const Shape& shape, const TensorTypeNode& type) {
  if (shape.size() != type.shape().size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!type.shape()[i].is_any() && type.shape()[i].size() != shape[i]) return false;
  }
  return true;
}

bool KindFits(const Value& value, const Type& type) {
  switch (type->kind()) {
    case TypeKind::kTensor: {
      const auto& wanted = static_cast<const TensorTypeNode&>(*type);
      return value.kind() == Value::Kind::kTensor && value.tensor().dtype() == wanted.dtype() &&
             ShapeFits(value.tensor().shape(), wanted);
    }
    case TypeKind::kTuple:
      return value.kind() == Value::Kind::kTuple &&
             value.fields().size() == static_cast<const TupleTypeNode&>(*type).fields().size();
    case TypeKind::kFunc: return value.kind() == Value::Kind::kFunction;
    case TypeKind::kRef: return value.kind() == Value::Kind::kReference;
    case TypeKind::kTypeCall:
      return value.kind() == Value::Kind::kData &&
             value.constructor()->belongs_to()->name() == static_cast<const TypeCallNode&>(*type).callee()->name();
    default: return true;
  }
}

}  // namespace

Result<void> CheckFits(const Value& value, const Type& type) {
  if (!type) return {};
  if (!KindFits(value, type)) {
    const Type found = TypeOf(value);
    return Reason{fmt::format("wants {}, got {}", ToString(type), found ? ToString(found) : ToString(value)), ""};
  }
  if (const TupleTypeNode* tuple = AsTupleType(type)) {
    for (size_t i = 0; i < tuple->fields().size(); ++i) {
      Result<void> field = CheckFits(value.fields()[i], tuple->fields()[i]);
      if (!field.ok()) return Reason{fmt::format("field {} {}", i, field.reason().text), ""};
    }
  }
  return {};
}

// ---- comparison and text ----

namespace {

bool TensorsEqual(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype().is_vector()) return std::memcmp(a.raw(), b.raw(), a.size_bytes()) == 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.At(i);
    const double y = b.At(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const bool is_finite = std::isfinite(x) && std::isfinite(y);
    if (!is_finite || std::abs(x - y) > tolerance * std::max(1.0, std::abs(x))) return false;
  }
  return true;
}

void AddText(const Value& value, std::string* text) {
  constexpr size_t kLongest = 400;
  constexpr int64_t kMostElements = 8;
  if (text->size() > kLongest) return;
  const auto add_fields = [&](const char* open, const std::vector<Value>& fields) {
    *text += open;
    for (size_t i = 0; i < fields.size() && text->size() <= kLongest; ++i) {
      if (i > 0) *text += ", ";
      AddText(fields[i], text);
    }
    *text += text->size() > kLongest ? "…" : ")";
  };
  switch (value.kind()) {
    case Value::Kind::kNone: *text += "nothing"; return;
    case Value::Kind::kFunction: *text += "fn"; return;
    case Value::Kind::kTuple: return add_fields("(", value.fields());
    case Value::Kind::kReference: return add_fields("ref(", {value.content()});
    case Value::Kind::kData:
      *text += value.constructor()->name();
      if (!value.fields().empty()) add_fields("(", value.fields());
      return;
    case Value::Kind::kTensor: {
      const Tensor& tensor = value.tensor();
      if (tensor.num_elements() > kMostElements || tensor.dtype().is_vector()) {
        *text += ToString(TypeOf(value));
        return;
      }
      const bool is_whole = !tensor.dtype().is_floating();
      const std::vector<int64_t> ints = is_whole ? tensor.ToInts() : std::vector<int64_t>{};
      std::string elements;
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        elements += elements.empty() ? "" : ", ";
        elements += is_whole ? std::to_string(ints[i]) : fmt::format("{:g}", tensor.At(i));
      }
      *text += tensor.rank() == 0 ? elements : "[" + elements + "]";
      return;
    }
  }
}

}  // namespace

bool ValuesEqual(const Value& a, const Value& b, double tolerance) {
  std::vector<std::pair<Value, Value>> stack{{a, b}};
  std::vector<Value> cells;  // compared before: cells may hold each other
  while (!stack.empty()) {
    const auto [x, y] = stack.back();
    stack.pop_back();
    if (x.kind() != y.kind()) return false;
    switch (x.kind()) {
      case Value::Kind::kNone:
      case Value::Kind::kFunction: break;
      case Value::Kind::kTensor:
        if (!TensorsEqual(x.tensor(), y.tensor(), tolerance)) return false;
        break;
      case Value::Kind::kReference: {
        bool is_known = false;
        for (const Value& cell : cells) is_known = is_known || cell.Is(x);
        if (is_known) break;
        cells.push_back(x);
        stack.emplace_back(x.content(), y.content());
        break;
      }
      case Value::Kind::kData:
        if (x.constructor()->name() != y.constructor()->name()) return false;
        [[fallthrough]];
      case Value::Kind::kTuple:
        if (x.fields().size() != y.fields().size()) return false;
        for (size_t i = 0; i < x.fields().size(); ++i) stack.emplace_back(x.fields()[i], y.fields()[i]);
        break;
    }
  }
  return true;
}

std::string ToString(const Value& value) {
  std::string text;
  AddText(value, &text);
  return text;
}

}  // namespace collage
