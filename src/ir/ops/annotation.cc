// annotation.cc: operators that say something of a value and leave it as it is: where it must be, whose it is, where
// fusion stops. Passes put them in and take them out.
#include "ir/ops/annotation.h"

#include "ir/ops/families.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

/// The result is the argument, which may be a tuple.
OpDef Identity(std::string name, std::string doc, std::string argument, std::vector<AttrField> attrs) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = {std::move(argument)};
  op.attrs = std::move(attrs);
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) { return call.args[0]; });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (int64_t e = 0; e < inputs[i].num_elements(); ++e) CopyElement(inputs[i], e, outputs[i], e);
    }
  };
  return op;
}

/// A virtual device in attributes.
std::vector<AttrField> DeviceAttrs(const std::string& prefix) {
  return {{prefix + "device_type", AttrKind::kInt, 0, "a DLDeviceType: 1 the processor, 2 CUDA; 0: any"},
          {prefix + "device_id", AttrKind::kInt, -1, "which of these; -1: any"},
          {prefix + "target", AttrKind::kString, "", "the target that computes there; empty: any"},
          {prefix + "memory_scope", AttrKind::kString, "", "memory within the device; empty: its main memory"}};
}

constexpr const char* kOnDevice = "on_device";
constexpr const char* kDeviceCopy = "device_copy";

OpDef OnDevice() {
  std::vector<AttrField> attrs = DeviceAttrs("");
  attrs.push_back({"constrain_body", AttrKind::kBool, true, "whether the argument must be computed there"});
  attrs.push_back({"constrain_result", AttrKind::kBool, false, "whether the result must be there as well"});
  return Identity(kOnDevice, "The argument, computed on a device.", "body", std::move(attrs));
}

OpDef DeviceCopy() {
  std::vector<AttrField> attrs = DeviceAttrs("src_");
  for (AttrField& field : DeviceAttrs("dst_")) attrs.push_back(std::move(field));
  return Identity(kDeviceCopy, "The argument, copied from one device to another.", "data", std::move(attrs));
}

}  // namespace

bool SaysWhere(const OpDef& op) { return op.name == kOnDevice || op.name == kDeviceCopy; }

bool OnlyAnnotates(const OpDef& op) { return SaysWhere(op) || op.name.starts_with("annotation."); }

void AddAnnotationOps(std::vector<OpDef>& rows) {
  const AttrField compiler{"compiler", AttrKind::kString, {}, "the toolchain", true};
  rows.push_back(OnDevice());
  rows.push_back(DeviceCopy());
  rows.push_back(
      Identity("annotation.compiler_begin", "A value that enters a toolchain's region.", "data", {compiler}));
  rows.push_back(Identity("annotation.compiler_end", "A value that leaves a toolchain's region.", "data", {compiler}));
  rows.push_back(Identity("annotation.stop_fusion", "A value that is not fused with what uses it.", "data", {}));
}

}  // namespace collage
