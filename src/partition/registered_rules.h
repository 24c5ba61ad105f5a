// registered_rules.h: the functions of rules from outside of the tree, by name (collage/partition_rules.h).
#pragma once

#include <string>

#include "collage/partition_rules.h"
#include "support/json_reader.h"

namespace collage {

/// The function that the text at `name` names: registered, or of a module; all modules are opened when one is asked for
/// that is not registered. Throws kInput, at that place, if there is none, with the reasons why modules cannot be used.
const FindCandidatesFn& FindRegisteredRule(const JsonReader& name);
const PartitionPredicateFn& FindRegisteredPredicate(const JsonReader& name);

}  // namespace collage
