// op.cc: lookup in the op table and checking of attributes against an operator's schema.
#include "collage/ir/op.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "collage/support/error.h"
#include "ir/ops/table.h"
#include "ir/print_value.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

/// The table: definitions in stable storage, one node each, in name order.
class OpTable {
 public:
  static const OpTable& Get() {
    static const OpTable table;
    return table;
  }

  std::span<const Op> all() const { return ops_; }
  Op Find(std::string_view name) const {
    auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }

 private:
  OpTable() : definitions_(AllOpRows()) {
    std::sort(definitions_.begin(), definitions_.end(), [](const OpDef& a, const OpDef& b) { return a.name < b.name; });
    for (const OpDef& definition : definitions_) {
      ops_.push_back(std::make_shared<OpNode>(&definition));
      const bool is_new = by_name_.emplace(definition.name, ops_.back()).second;
      COLLAGE_CHECK(is_new) << "operator '" << definition.name << "' has two rows";
    }
  }

  std::vector<OpDef> definitions_;
  std::vector<Op> ops_;
  std::unordered_map<std::string_view, Op> by_name_;
};

std::string_view ToString(AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool: return "a bool";
    case AttrKind::kInt: return "an integer";
    case AttrKind::kDouble: return "a number";
    case AttrKind::kString: return "a string";
    case AttrKind::kDType: return "a dtype";
    case AttrKind::kInts: return "a list of integers";
    case AttrKind::kAny: return "anything";
  }
  return "anything";
}

bool IsInts(const AttrValue& value) {
  if (value.as_list() == nullptr) return value.as_int() != nullptr;
  return std::all_of(value.as_list()->begin(), value.as_list()->end(),
                     [](const AttrValue& item) { return item.as_int() != nullptr; });
}

bool Fits(const AttrField& field, const AttrValue& value) {
  if (value.is_none()) return field.default_value.is_none() && !field.required;
  switch (field.kind) {
    case AttrKind::kBool:
      return value.as_bool() != nullptr || (value.as_int() != nullptr && (*value.as_int() | 1) == 1);
    case AttrKind::kInt: return value.as_int() != nullptr;
    case AttrKind::kDouble: return value.as_double() != nullptr || value.as_int() != nullptr;
    case AttrKind::kString: return value.as_string() != nullptr;
    case AttrKind::kDType:
      return value.as_string() != nullptr && (value.as_string()->empty() || DataType::IsName(*value.as_string()));
    case AttrKind::kInts: return IsInts(value);
    case AttrKind::kAny: return true;
  }
  return false;
}

}  // namespace

char KindLetter(OpPatternKind kind) {
  switch (kind) {
    case OpPatternKind::kElemWise: return 'E';
    case OpPatternKind::kBroadcast: return 'B';
    case OpPatternKind::kInjective: return 'I';
    case OpPatternKind::kCommReduce: return 'R';
    case OpPatternKind::kOutEWiseFusable: return 'A';
    case OpPatternKind::kTuple: return 'T';
    case OpPatternKind::kOpaque: return 'O';
  }
  return 'O';
}

const AttrField* OpDef::FindAttr(std::string_view attr_name) const {
  for (const AttrField& field : attrs) {
    if (field.name == attr_name) return &field;
  }
  return nullptr;
}

Op FindOp(std::string_view name) { return OpTable::Get().Find(name); }

Op GetOp(std::string_view name) {
  Op op = FindOp(name);
  if (op) return op;
  std::string hint;
  for (const std::string& similar : SimilarOps(name)) hint += (hint.empty() ? "did you mean '" : "', '") + similar;
  throw Error(ErrorCategory::kInput, fmt::format("unknown operator '{}'", name), "", hint.empty() ? "" : hint + "'?");
}

std::span<const Op> AllOps() { return OpTable::Get().all(); }

std::vector<std::string> SimilarOps(std::string_view name) {
  std::vector<std::string> names;
  for (const Op& op : AllOps()) names.push_back(op->name());
  return NearMisses(name, names);
}

namespace {

/// Takes out of `attrs` what other operators of this name have and what changes nothing here.
void DropForeignAttrs(const OpDef& op, Attrs& attrs) {
  for (const ForeignAttr& foreign : op.foreign_attrs) {
    const AttrValue* value = attrs.Find(foreign.name);
    if (value == nullptr) continue;
    if (!foreign.accepted.empty() &&
        std::find(foreign.accepted.begin(), foreign.accepted.end(), *value) == foreign.accepted.end()) {
      throw Error(ErrorCategory::kUnsupported, fmt::format("attribute '{}' of operator '{}' can only be {}",
                                                           foreign.name, op.name, AttrText(foreign.accepted[0])));
    }
    attrs.Erase(foreign.name);
  }
}

}  // namespace

Attrs CompleteAttrs(const OpDef& op, Attrs attrs) {
  DropForeignAttrs(op, attrs);
  for (const auto& [name, value] : attrs) {
    const AttrField* field = op.FindAttr(name);
    if (field == nullptr) {
      std::string known;
      for (const AttrField& candidate : op.attrs) known += (known.empty() ? "" : ", ") + candidate.name;
      throw Error(ErrorCategory::kInput, fmt::format("operator '{}' has no attribute '{}'", op.name, name), "",
                  known.empty() ? "it takes no attributes" : "it takes: " + known);
    }
    if (!Fits(*field, value)) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("attribute '{}' of operator '{}' must be {}", name, op.name, ToString(field->kind)));
    }
  }
  for (const AttrField& field : op.attrs) {
    if (attrs.Has(field.name)) continue;
    if (field.required) {
      throw Error(ErrorCategory::kInput, fmt::format("operator '{}' needs attribute '{}'", op.name, field.name));
    }
    attrs.Set(field.name, field.default_value);
  }
  return attrs;
}

}  // namespace collage
