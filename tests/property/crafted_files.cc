// crafted_files.cc: a plan is changed as JSON, a program as such or as bytes: its integers are found by their zeros.
#include "property/crafted_files.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "bytecode/bytecode.h"
#include "collage/ir/op.h"
#include "collage/vm/vm.h"
#include "support/checksum.h"
#include "unit/runtime/executable_bytes.h"

namespace collage {
namespace {

using Json = nlohmann::json;

/// Values that programs get wrong: ends of ranges, and their neighbours.
int64_t EdgeOf(int64_t value, RandomSource& random) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto shifted = [&](uint64_t by) { return static_cast<int64_t>(static_cast<uint64_t>(value) + by); };
  const std::vector<int64_t> edges{0,
                                   1,
                                   2,
                                   3,
                                   7,
                                   -1,
                                   -2,
                                   64,
                                   shifted(1),
                                   shifted(-1),
                                   shifted(64),
                                   shifted(-64),
                                   shifted(static_cast<uint64_t>(value)),
                                   value / 2,
                                   -(value / 2),
                                   255,
                                   256,
                                   1 << 20,
                                   int64_t{1} << 31,
                                   (int64_t{1} << 31) - 1,
                                   int64_t{1} << 32,
                                   (int64_t{1} << 32) - 1,
                                   int64_t{1} << 40,
                                   int64_t{1} << 62,
                                   kMost,
                                   kMost - 63,
                                   -kMost - 1};
  return random.Pick(edges);
}

// ---- plans ----

/// All that is inside `json`, itself not.
void Collect(Json& json, std::vector<Json*>& nodes) {
  if (!json.is_structured()) return;
  for (Json& child : json) {
    nodes.push_back(&child);
    Collect(child, nodes);
  }
}

/// Some node, those of large lists no likelier than others.
Json& AnyNode(Json& plan, RandomSource& random) {
  Json* node = &plan;
  while (node->is_structured() && !node->empty()) {
    if (node != &plan && random.OneIn(4)) break;
    node = &*std::next(node->begin(), random.Below(static_cast<int>(node->size())));
  }
  return *node;
}

void ChangeList(Json& list, const Json& other, RandomSource& random) {
  const auto any = [&] { return random.Below(static_cast<int>(list.size())); };
  switch (random.Below(5)) {
    case 0: list.erase(static_cast<size_t>(any())); break;
    case 1: list.push_back(Json(list[static_cast<size_t>(any())])); break;
    case 2: list[static_cast<size_t>(any())].swap(list[static_cast<size_t>(any())]); break;
    case 3: list.push_back(other); break;
    default: list = Json::array(); break;
  }
}

Json AnyScalar(RandomSource& random) {
  static const std::vector<Json> scalars{nullptr,
                                         true,
                                         0.5,
                                         1e300,
                                         -1,
                                         "",
                                         "float32",
                                         "int8",
                                         "float64x7",
                                         "bool",
                                         "object",
                                         "dnnl",
                                         std::string(300, 'x'),
                                         Json::array(),
                                         Json::object(),
                                         "../../../../tmp/x",
                                         std::numeric_limits<uint64_t>::max()};
  return random.Pick(scalars);
}

void ChangeNode(Json& node, const Json& other, RandomSource& random) {
  if (node.is_array() && !node.empty() && !random.OneIn(8)) return ChangeList(node, other, random);
  if (node.is_object() && !node.empty() && !random.OneIn(8)) {
    node.erase(std::next(node.begin(), random.Below(static_cast<int>(node.size()))));
    return;
  }
  if (node.is_number_integer() && !random.OneIn(8)) {
    node = EdgeOf(node.get<int64_t>(), random);
    return;
  }
  node = random.OneIn(2) ? other : AnyScalar(random);
}

void ChangeHeader(std::string& bytes, RandomSource& random) {
  const size_t at = random.OneIn(8) ? kVersionAt : kPlanAt + 8 * static_cast<size_t>(random.Below(6));
  int64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  value = EdgeOf(value, random);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// ---- bytes ----

bool LooksLikeInteger(const std::string& bytes, size_t at) {
  const auto is_filling = [&](size_t i) { return bytes[at + i] == 0 || bytes[at + i] == '\xff'; };
  return is_filling(4) && is_filling(5) && is_filling(6) && is_filling(7);
}

void ChangeInteger(std::string& bytes, size_t at, RandomSource& random) {
  while (at + 9 < bytes.size() && !LooksLikeInteger(bytes, at)) ++at;
  if (at + 8 > bytes.size()) return;
  int64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  value = EdgeOf(value, random);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void ChangeBytes(std::string& bytes, size_t at, RandomSource& random) {
  const auto length = static_cast<size_t>(1 + random.Below(random.OneIn(2) ? 8 : 64));
  const std::string stretch = bytes.substr(at, length);
  switch (random.Below(4)) {
    case 0: bytes.erase(at, length); break;
    case 1: bytes.insert(at, stretch); break;
    case 2: bytes[at] = static_cast<char>(random.Below(256)); break;
    default: {
      const auto from = static_cast<size_t>(random.Below(static_cast<int>(bytes.size())));
      const std::string other = bytes.substr(from, length);
      bytes.replace(at, other.size(), other);
    }
  }
}

// ---- instructions ----

/// Another number, mostly one that may be right.
int NumberNear(int64_t value, RandomSource& random) {
  if (random.OneIn(8)) return static_cast<int>(EdgeOf(value, random));
  return random.OneIn(2) ? random.Below(12) : static_cast<int>(value) + random.Below(5) - 2;
}

void ChangeInstruction(vm::Instruction& instruction, RandomSource& random) {
  switch (random.Below(5)) {
    case 0: instruction.opcode = static_cast<vm::Opcode>(random.Below(vm::kNumOpcodes)); break;
    case 1: instruction.dst = NumberNear(instruction.dst, random); break;
    case 2: instruction.index = NumberNear(instruction.index, random); break;
    case 3: instruction.target = NumberNear(instruction.target, random); break;
    default:
      if (instruction.regs.empty() || random.OneIn(4)) {
        instruction.regs.push_back(random.Below(6));
      } else if (random.OneIn(4)) {
        instruction.regs.pop_back();
      } else {
        int& reg = instruction.regs[static_cast<size_t>(random.Below(static_cast<int>(instruction.regs.size())))];
        reg = NumberNear(reg, random);
      }
  }
}

void ChangeCode(std::vector<vm::Instruction>& code, RandomSource& random) {
  const auto any = [&] { return code.begin() + random.Below(static_cast<int>(code.size())); };
  switch (random.Below(6)) {
    case 0: code.erase(any()); break;
    case 1: code.insert(any(), vm::Instruction(*any())); break;
    case 2: std::iter_swap(any(), any()); break;
    default: ChangeInstruction(*any(), random);
  }
}

void ChangeFunction(vm::VmFunction& function, RandomSource& random) {
  if (!random.OneIn(6)) return ChangeCode(function.code, random);
  const std::vector<int*> fields{&function.num_params, &function.num_captured, &function.self, &function.num_registers};
  int& field = *random.Pick(fields);
  field = NumberNear(field, random);
}

AttrValue OtherAttr(const AttrValue& value, RandomSource& random) {
  if (const AttrValue::List* list = value.as_list(); list != nullptr && !list->empty() && !random.OneIn(4)) {
    AttrValue::List changed = *list;
    const auto at = static_cast<size_t>(random.Below(static_cast<int>(changed.size())));
    if (random.OneIn(4)) {
      changed.erase(changed.begin() + static_cast<int64_t>(at));
    } else {
      changed[at] = OtherAttr(changed[at], random);
    }
    return changed;
  }
  if (const int64_t* number = value.as_int(); number != nullptr && !random.OneIn(8)) return EdgeOf(*number, random);
  switch (random.Below(5)) {
    case 0: return random.OneIn(2);
    case 1: return EdgeOf(3, random);
    case 2: return 0.5;
    case 3: return std::string("int32");
    default: return AttrValue::List{1, 2};
  }
}

void ChangeOperator(vm::OpCallEntry& call, RandomSource& random) {
  if (call.attrs.size() == 0 || random.OneIn(4)) {
    call.op = &random.Pick(std::vector<Op>(AllOps().begin(), AllOps().end()))->def();
    return;
  }
  call.attrs = CraftAttrs(std::move(call.attrs), random);
}

/// The program `bytes` with one to three instructions, operators or numbers of functions changed.
std::string CraftInstructions(const std::string& bytes, RandomSource& random) {
  vm::Program program = vm::Executable::Deserialize(bytes).program();
  for (int changes = 1 + random.Below(3); changes > 0; --changes) {
    const auto any = [&](auto& items) -> auto& {
      return items[static_cast<size_t>(random.Below(static_cast<int>(items.size())))];
    };
    switch (random.Below(8)) {
      case 0:
      case 1:
        if (!program.op_calls.empty()) ChangeOperator(any(program.op_calls), random);
        break;
      case 2:
        if (!program.constants.empty()) std::swap(any(program.constants), any(program.constants));
        break;
      default: {
        vm::VmFunction& function = any(program.functions);
        if (!function.code.empty()) ChangeFunction(function, random);
      }
    }
  }
  return vm::Executable(std::make_shared<const vm::Program>(std::move(program))).Serialize();
}

}  // namespace

Attrs CraftAttrs(Attrs attrs, RandomSource& random) {
  for (int changes = 1 + random.Below(2); changes > 0 && attrs.size() > 0; --changes) {
    auto attr = attrs.begin();
    std::advance(attr, random.Below(static_cast<int>(attrs.size())));
    attrs.Set(attr->first, OtherAttr(AttrValue(attr->second), random));
  }
  return attrs;
}

std::string CraftExecutable(std::string bytes, RandomSource& random) {
  if (random.OneIn(16)) {
    ChangeHeader(bytes, random);
    return WithHeaderSealed(std::move(bytes));
  }
  Json plan = PlanOf(bytes);
  if (random.OneIn(8)) {
    const auto at = 64 + static_cast<size_t>(random.Below(static_cast<int>(FindPlan(bytes).offset - 64)));
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
  } else {
    for (int changes = 1 + random.Below(4); changes > 0; --changes) {
      const Json other = AnyNode(plan, random);
      ChangeNode(AnyNode(plan, random), other, random);
      if (!plan.is_object()) break;
    }
  }
  SealPieces(bytes, plan);
  std::string crafted = WithPlan(bytes, plan);
  if (random.OneIn(64)) crafted.resize(static_cast<size_t>(random.Below(static_cast<int>(crafted.size()))));
  return crafted;
}

std::string CraftProgram(std::string bytes, RandomSource& random) {
  if (random.OneIn(2)) return CraftInstructions(bytes, random);
  if (random.OneIn(2)) return CraftExecutable(std::move(bytes), random);
  std::string bytecode = BytecodeOf(bytes);
  for (int changes = 1 + random.Below(3); changes > 0 && bytecode.size() > 64; --changes) {
    const auto at = static_cast<size_t>(random.Below(static_cast<int>(bytecode.size() - 8)));
    random.OneIn(3) ? ChangeBytes(bytecode, at, random) : ChangeInteger(bytecode, at, random);
  }
  return WithBytecode(std::move(bytes), bytecode);
}

std::string FlipBits(std::string bytes, RandomSource& random) {
  for (int flips = 1 + random.Below(3); flips > 0; --flips) {
    const auto at = static_cast<size_t>(random.Below(static_cast<int>(bytes.size())));
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
  }
  return bytes;
}

}  // namespace collage
