// random_placed_function.cc: steps on values that are all of one shape.
#include "property/devices/random_placed_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "collage/ir/infer_type.h"

namespace collage {
namespace {

class Generator {
 public:
  explicit Generator(RandomSource& random) : random_(random) {}

  PlacedFunction Make(int count, bool branches) {
    const Type type = TensorType(Shape{2, 4, 6}, kFloat32);
    std::vector<Var> params{MakeVar("x", type), MakeVar("y", type)};
    values_.assign(params.begin(), params.end());
    if (branches) params.push_back(MakeVar("chooses", TensorType(Shape{}, kBool)));
    const int straight = branches ? count / 3 : count;
    for (int i = 0; i < straight; ++i) values_.push_back(Step());
    const auto branch = [&] {
      const std::vector<Expr> before = values_;
      for (int i = 0; i <= count / 3; ++i) values_.push_back(Step());
      const Expr result = values_.back();
      values_ = before;
      return result;
    };
    if (branches) values_.push_back(std::make_shared<IfNode>(params.back(), branch(), branch()));
    Expr body = values_.back();
    if (random_.OneIn(3)) body = MakeTuple({body, Recent()});
    const Function function = MakeFunction(params, body);
    InferType(function);
    return {function, std::move(wanted_)};
  }

 private:
  Expr Recent() {
    const int among = std::min<int>(static_cast<int>(values_.size()), 4);
    return values_[values_.size() - 1 - static_cast<size_t>(random_.Below(among))];
  }

  static Expr OnDevice(const Expr& value, const VirtualDevice& device, bool constrains) {
    return MakeCall("on_device", {value},
                    {{"device_type", device.device_type},
                     {"memory_scope", device.memory_scope},
                     {"constrain_body", constrains},
                     {"constrain_result", false}});
  }

  /// A call with a name, wanted on some device perhaps. Its arguments may then come from anywhere, most of the time.
  Expr Call(const std::string& op, std::vector<Expr> args, Attrs attrs = {}) {
    VirtualDevice device;
    if (random_.OneIn(4)) {
      device.device_type = random_.OneIn(2) || op == "nn.softmax" ? 1 : 12;
      if (device.device_type == 12 && random_.OneIn(3)) device.memory_scope = "global.vtcm";
      const bool is_free = !random_.OneIn(6);
      for (Expr& arg : args) {
        if (is_free && arg->kind() != ExprKind::kTuple) arg = OnDevice(arg, device, /*constrains=*/false);
      }
    }
    const Expr call = MakeCall(op, std::move(args), std::move(attrs));
    const std::string name = fmt::format("n{}", num_calls_++);
    call->set_span({name});
    if (device.device_type == 0) return call;
    wanted_[name] = device;
    return OnDevice(call, device, /*constrains=*/true);
  }

  Expr Step() {
    const Expr last = values_.back();
    switch (random_.Below(6)) {
      case 0: return Call("nn.relu", {last});
      case 1: return Call("add", {last, Recent()});
      case 2: return Call("multiply", {Recent(), Call("tanh", {last})});
      case 3: return Call("nn.softmax", {Recent()}, {{"axis", -1}});
      case 4: {
        const Expr flat = MakeCall("reshape", {last}, {{"newshape", std::vector<int64_t>{8, 6}}});
        return MakeCall("reshape", {Call("sigmoid", {flat})}, {{"newshape", std::vector<int64_t>{2, 4, 6}}});
      }
      default: {
        const Expr split = Call("split", {Recent()}, {{"indices_or_sections", 2}, {"axis", 2}});
        const Expr halves = MakeTuple({MakeTupleGetItem(split, 1), Call("nn.relu", {MakeTupleGetItem(split, 0)})});
        return Call("concatenate", {halves}, {{"axis", 2}});
      }
    }
  }

  RandomSource& random_;
  std::vector<Expr> values_;
  std::map<std::string, VirtualDevice> wanted_;
  int num_calls_ = 0;
};

}  // namespace

PlacedFunction MakePlacedFunction(int count, RandomSource& random, bool branches) {
  return Generator(random).Make(count, branches);
}

}  // namespace collage
