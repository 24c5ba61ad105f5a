// called_composites.h: a partition's body cut at the Composite functions that libraries compute:
//
//     relu(acme.dense(tanh(%x), w) + %b)      →      %call0 := acme.dense(tanh(%x), w)
//                                                    relu(%call0 + %b)
//
// Arguments and what is left are expressions without Composites, of which loops are made as before.
#pragma once

#include <string>
#include <vector>

#include "backends/native/description/libraries.h"
#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage::native {

/// A call of a Composite function that a library computes.
struct CalledComposite {
  std::string label;
  const CalledLibrary* library = nullptr;
  std::vector<Expr> arguments;  ///< without constants; may hold results of calls before this one
  /// A function of `arguments` whose body calls the Composite with its parameters and constants.
  Function function;
  Var result;  ///< stands for its value
};

/// Typed.
struct CutBody {
  std::vector<CalledComposite> calls;  ///< in the order of evaluation
  Expr rest;                           ///< the result, computed of theirs
  Expr whole;                          ///< `rest`, with calls a tuple of all arguments and of it
};

/// Cuts `body`. `libraries` must outlive the answer. Throws kUnsupported for Composites of tuples.
CutBody CutAtCalls(const Expr& body, const std::vector<CalledLibrary>& libraries);

/// The call for `composite`: the first row with its label that has one; else why the last of them has none.
Result<ExternCall> CallFor(const CalledComposite& composite, const BoundaryLayouts& layouts, int num_threads);

}  // namespace collage::native
