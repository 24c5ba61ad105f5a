// Whether a toolchain compiles functions of any size, asked directly and through decorators.
#include "collage/target/symbolic_sizes.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "target/forwarding_toolchain.h"

namespace collage {
namespace {

class Plain : public Toolchain {
 public:
  std::string name() const override { return "plain"; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
};

class AnySize : public Plain, public HasSymbolicSizes {
 public:
  Result<void> SupportsSymbolicSizes(const CallNode& call) const override {
    if (call.op()->name == "tanh") return {};
    return Reason{"tanh only", name()};
  }
};

Expr CallOf(const std::string& op) {
  const Var x = MakeVar("x", TensorType({Dim::Any(), 3}, kFloat32));
  const Function function = MakeFunction({x}, MakeCall(op, {x}));
  InferType(function);
  return function->body();
}

TEST(SymbolicSizes, ToolchainsWithoutTheBaseClassNeedAllShapes) {
  const Plain plain;
  EXPECT_FALSE(CompilesSymbolicSizes(plain));
  const Expr call = CallOf("tanh");
  EXPECT_EQ(SupportsSymbolicSizes(plain, *As<CallNode>(call)).reason().text, "needs to know all shapes");
}

TEST(SymbolicSizes, DecoratorsAnswerAsWhatTheyDecorate) {
  const AnySize any_size;
  const Plain plain;
  const Expr tanh = CallOf("tanh"), exp = CallOf("exp");
  const ForwardingToolchain forwarding(any_size);
  EXPECT_TRUE(CompilesSymbolicSizes(forwarding));
  EXPECT_TRUE(SupportsSymbolicSizes(forwarding, *As<CallNode>(tanh)).ok());
  EXPECT_EQ(SupportsSymbolicSizes(forwarding, *As<CallNode>(exp)).reason().text, "tanh only");
  EXPECT_FALSE(CompilesSymbolicSizes(ForwardingToolchain(plain)));
}

}  // namespace
}  // namespace collage
