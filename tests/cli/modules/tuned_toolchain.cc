// tuned_toolchain.cc: a toolchain that has options and schedules: element-wise operators by native code, and what these
// say.
#include "collage/ir/infer_type.h"
#include "collage/target/toolchain_module.h"

namespace {

using namespace collage;

class Tuned : public Toolchain {
 public:
  explicit Tuned(int64_t level = 0, bool is_exact = false, bool is_coarse = false)
      : level_(level), is_exact_(is_exact), is_coarse_(is_coarse) {}

  std::string name() const override { return "tuned"; }
  std::string description() const override { return "native code, as its options say"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 50; }
  bool is_default() const override { return false; }

  std::vector<AttrField> Options() const override {
    return {{"accuracy", AttrKind::kString, "standard", "exact or standard"},
            {"inference_precision", AttrKind::kString, "f32", "f32 or bf16"},
            {"level", AttrKind::kInt, 0, "how hard it tries"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    return std::make_unique<Tuned>(options.Int("level"), options.String("accuracy") == "exact",
                                   options.String("inference_precision") == "bf16");
  }

  Result<void> SupportsCall(const CallNode& call) const override {
    const std::string& op = call.op()->name;
    if (op == "nn.relu") return {};
    if (op != "sigmoid") return Reason{"takes 'nn.relu' and 'sigmoid', not '" + op + "'", name()};
    return is_exact_ ? Result<void>(Reason{"its sigmoid is not exact", name()}) : Result<void>();
  }
  /// At level 5 it computes in vain, unless its schedule is "plain".
  bool has_schedules() const override { return level_ == 5; }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    if (request.schedule == "plain") return std::vector<std::string>{""};
    return std::vector<std::string>{"broken", "plain"};
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    constexpr int64_t kTooHard = 7;
    if (level_ == kTooHard) return Reason{"level 7 is too hard", name()};
    if (request.schedule == "broken") return Reason{"schedule 'broken' is", name()};
    PartitionRequest own = request;
    own.schedule.clear();
    if (has_schedules() && request.schedule != "plain") own.function = Slow(request.function);
    if (is_coarse_) own.function = Off(request.function);
    return ToolchainRegistry::Global().Native()->RelayToRuntime(own);
  }

 private:
  /// The same result, and a few sines that do not matter to it, of numbers even where there are infinities.
  static Function Slow(const Function& function) {
    Expr sines = MakeCall("tanh", {function->body()});
    for (int i = 0; i < 8; ++i) sines = MakeCall("sin", {sines});
    const Expr none =
        MakeCall("multiply", {sines, MakeConstant(Tensor::Of<float>({}, kFloat32, std::vector<float>{0}))});
    const Function slow = MakeFunction(function->params(), MakeCall("add", {function->body(), none}));
    InferType(slow);
    return slow;
  }

  /// As far from the right result as bfloat16 may be, and float32 may not.
  static Function Off(const Function& function) {
    const Expr factor = MakeConstant(Tensor::Of<float>({}, kFloat32, std::vector<float>{1.004F}));
    const Function off = MakeFunction(function->params(), MakeCall("multiply", {function->body(), factor}));
    InferType(off);
    return off;
  }

  int64_t level_;
  bool is_exact_;
  bool is_coarse_;
};

std::unique_ptr<Toolchain> Make() { return std::make_unique<Tuned>(); }

}  // namespace

COLLAGE_TOOLCHAIN_MODULE(Make)
