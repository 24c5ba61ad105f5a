// contender_list.cc: covers are compared by their variants; what is no cover of candidates, by its module.
#include "driver/phases/contender_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "collage/ir/op.h"
#include "collage/ir/structural.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "driver/covers/coalesced_cover.h"
#include "driver/covers/partitioning_json.h"
#include "target/annotations.h"

namespace collage {
namespace {

/// The tuple whose fields, in their order, are those of `expr`; null where it is no such tuple.
Expr TupleOfAllFields(const Expr& expr) {
  const TupleNode* tuple = As<TupleNode>(expr);
  Expr whole;
  for (size_t i = 0; tuple != nullptr && i < tuple->fields().size(); ++i) {
    const TupleGetItemNode* field = As<TupleGetItemNode>(tuple->fields()[i]);
    if (field == nullptr || static_cast<size_t>(field->index()) != i) return nullptr;
    if (i > 0 && field->tuple() != whole) return nullptr;
    whole = field->tuple();
  }
  return whole;
}

/// A digest of a module's partitions and their code, whatever they are called and estimated to take. Constants count by
/// shape: all contenders are made of one model, whose weights would take longer to read than all else. Reshapes, and
/// tuples of all fields of one, do not count: they move nothing, in a partition or beside it.
std::string KeyOf(const IRModule& partitioned) {
  const Expr nameless = Rewrite(partitioned.main(), [](const Expr& expr) -> Expr {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr && call->op()->is_reshape) return call->args()[0];
    if (const Expr whole = TupleOfAllFields(expr)) return whole;
    const auto inner = std::dynamic_pointer_cast<const FunctionNode>(expr);
    if (inner == nullptr || !inner->attrs().Has(kAttrEstimate)) return expr;
    return WithAttr(WithAttr(inner, kAttrEstimate, 0.0), "global_symbol", "");
  });
  return StructuralHash(nameless, {.constants_by_shape = true});
}

}  // namespace

void ContenderList::Add(const NamedCover& one, bool is_extra) {
  if (one.merges && AddCoalesced(one.name, one.cover)) return;
  std::vector<VariantIndex> sorted = one.cover.variants;
  std::sort(sorted.begin(), sorted.end());
  auto [it, is_new] = seen_.emplace(std::move(sorted), contenders_.size());
  if (is_new) {
    const std::vector<ChosenPartition> chosen = partitioner_.ChosenOf(one.cover);
    std::optional<IRModule> partitioned = partitioner_.Apply(chosen, module_);
    if (!partitioned) {
      seen_.erase(it);
      return;
    }
    contenders_.push_back({one.name, one.is_single, is_extra, std::move(*partitioned), one.cover.seconds,
                           PartitioningToJson(partitioner_.candidates().graph(), chosen)});
    contenders_.back().is_costed = one.cover.num_unknown == 0 && one.cover.seconds > 0;  // a search's
  }
  ContenderModule& contender = contenders_[it->second];
  if (one.is_single && !contender.is_single) {
    contender.name = one.name;
    contender.is_single = true;
  }
  if (one.is_baseline) contender.baselines.push_back(one.name);
}

void ContenderList::AddBaseline(const NamedPartitions& one) {
  std::optional<IRModule> partitioned = partitioner_.Apply(one.partitions.chosen, module_);
  COLLAGE_CHECK(partitioned.has_value()) << "partitions of '" << one.name << "' need each other";
  ContenderModule* same = AddModule({one.name,
                                     true,
                                     false,
                                     std::move(*partitioned),
                                     /*estimated_seconds=*/0,
                                     PartitioningToJson(partitioner_.candidates().graph(), one.partitions.chosen),
                                     {one.name}});
  if (same == nullptr || same->is_single) return;
  same->name = one.name;
  same->is_single = true;
}

bool ContenderList::AddCoalesced(const std::string& name, const Cover& cover) {
  const OwnedPartitions merged = CoalescedForLibraries(partitioner_, cover);
  if (merged.chosen.size() == cover.variants.size()) return false;
  std::optional<IRModule> partitioned = partitioner_.Apply(merged.chosen, module_);
  if (!partitioned) return false;
  AddModule({name, false, false, std::move(*partitioned), cover.seconds,
             PartitioningToJson(partitioner_.candidates().graph(), merged.chosen)});
  return true;
}

void ContenderList::AddGiven(ContenderModule given) {
  const std::string name = given.name;
  ContenderModule* same = AddModule(std::move(given));
  if (same != nullptr && !same->is_single) same->name = name;
}

/// Adds `one`, unless there is the same already: then it returns that.
ContenderModule* ContenderList::AddModule(ContenderModule one) {
  while (keys_.size() < contenders_.size()) keys_.push_back(KeyOf(contenders_[keys_.size()].module));
  const auto found = std::ranges::find(keys_, KeyOf(one.module));
  if (found == keys_.end()) {
    contenders_.push_back(std::move(one));
    return nullptr;
  }
  ContenderModule& same = contenders_[static_cast<size_t>(found - keys_.begin())];
  same.baselines.insert(same.baselines.end(), one.baselines.begin(), one.baselines.end());
  return &same;
}

}  // namespace collage
