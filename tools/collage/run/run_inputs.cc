// run_inputs.cc: sizes and arrays by name.
#include "run_inputs.h"

#include <fmt/format.h>

#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "run_values.h"

namespace collage::cli {

RunInputs SizesFrom(const SettingTexts& settings) {
  const CompileOptions options = OptionsFrom(settings);
  RunInputs inputs;
  inputs.shapes = options.shapes;
  for (const auto& [name, range] : options.dims) {
    if (range.front() != range.back()) {
      throw Error(ErrorCategory::kInput, fmt::format("dimension '{}' has a range; a run has one size", name), "--dim");
    }
    inputs.sizes[name] = range.front();
  }
  return inputs;
}

void AddArrays(const std::string& file, const std::string& npz, const std::vector<std::string>& single,
               RunInputs& inputs) {
  if (npz.empty() && single.empty()) return;
  RunNames names;
  StringTensors texts;
  if (vm::Executable::IsBytecode(file)) {
    const vm::Executable program = vm::Executable::Load(file);
    for (const Var& param : program.Parameters("main")) names.inputs.push_back(param->name());
    names.outputs = program.ResultNames("main");
    texts = program.Strings("main");
  } else {
    const Executable executable = Executable::Load(file);
    for (const PortInfo& port : executable.inputs()) names.inputs.push_back(port.name);
    for (const PortInfo& port : executable.outputs()) names.outputs.push_back(port.name);
  }
  StringNumbers strings(&texts.known());
  StoredArrays given;
  if (!npz.empty()) given = ReadInputs(npz, names, strings);
  for (const std::string& text : single) {
    const auto [name, path] = SplitInput(text, names, "write NAME=FILE.npy");
    given[name] = ReadArray(path, strings);
  }
  for (size_t i = 0; i < names.inputs.size(); ++i) {
    const auto found = given.find(names.inputs[i]);
    if (found == given.end()) continue;
    CheckIsText(found->first, found->second, texts.IsParam(i));
    inputs.tensors[found->first] = found->second.tensor;
  }
}

}  // namespace collage::cli
