// together.cc: one partition of as many results; one by one where that disagrees.
#include "conformance/together.h"

#include <gtest/gtest-spi.h>

#include "collage/ir/infer_type.h"

namespace collage::conformance {

void ExpectAllAgree(const Toolchain& toolchain, const std::vector<NamedFunction>& functions, const Options& options) {
  std::vector<Var> params;
  std::vector<Expr> results;
  for (const NamedFunction& one : functions) {
    params.insert(params.end(), one.function->params().begin(), one.function->params().end());
    const Expr& body = one.function->body();
    InferType(body);
    const TupleTypeNode* tuple = AsTupleType(body->checked_type());
    if (tuple == nullptr) results.push_back(body);
    for (size_t i = 0; tuple != nullptr && i < tuple->fields().size(); ++i) {
      results.push_back(MakeTupleGetItem(body, static_cast<int>(i)));
    }
  }
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    ExpectAgrees(toolchain, MakeFunction(params, MakeTuple(results)), options);
  }
  if (failures.size() == 0) return;
  for (const NamedFunction& one : functions) {
    SCOPED_TRACE(one.name);
    ExpectAgrees(toolchain, one.function, options);
  }
  std::string names;
  for (const NamedFunction& one : functions) names += one.name + "\n";
  ADD_FAILURE() << failures.GetTestPartResult(0).message() << "\nof these, compiled together:\n" << names;
}

}  // namespace collage::conformance
