// model_program.cc: what `collage compile --emit program` puts in front of a model: a program that runs it on arrays of
// NumPy.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "runtime/npy.h"
#include "runtime/plan/embedded_file.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

struct Arguments {
  std::string inputs;
  std::vector<std::string> single;
  std::string outputs;
  int runs = 0;
};

std::string PortText(const char* what, const PortInfo& port) {
  return fmt::format("  {} '{}' {} {}\n", what, port.name, port.dtype.ToString(), ToString(port.shape));
}

std::string Ports(const Executable& model) {
  std::string text = "The model:\n";
  for (const PortInfo& port : model.inputs()) text += PortText("input", port);
  for (const PortInfo& port : model.outputs()) text += PortText("output", port);
  return text;
}

/// Arrays by the inputs that they are for. Throws kInput for others.
std::map<std::string, Tensor> Given(const Arguments& arguments, const Executable& model) {
  std::map<std::string, Tensor> given;
  if (!arguments.inputs.empty()) given = ReadNpz(arguments.inputs);
  for (const std::string& text : arguments.single) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCategory::kInput, fmt::format("malformed input '{}'", text), "--input", "write NAME=FILE.npy");
    }
    given[text.substr(0, equals)] = ReadArray(text.substr(equals + 1));
  }
  const std::vector<PortInfo> ports = model.inputs();
  for (const auto& [name, _] : given) {
    if (std::ranges::find(ports, name, &PortInfo::name) != ports.end()) continue;
    throw Error(ErrorCategory::kInput, fmt::format("the model has no input '{}'", name), "", "--help lists its inputs");
  }
  return given;
}

void Run(const Arguments& arguments, const Executable& model) {
  const std::map<std::string, Tensor> given = Given(arguments, model);
  ExecutionInstance instance(model);
  const std::vector<PortInfo> inputs = model.inputs(), outputs = model.outputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto found = given.find(inputs[i].name);
    Tensor tensor = found == given.end() ? Tensor::Empty(inputs[i].shape, inputs[i].dtype) : found->second;
    if (found == given.end()) {
      if (arguments.runs == 0) {
        throw Error(ErrorCategory::kInput, fmt::format("no value for input '{}'", inputs[i].name), "",
                    "give --inputs FILE.npz or --input NAME=FILE.npy; --runs N times random ones");
      }
      FillRandom(tensor, i + 1);
    }
    instance.SetInput(i, tensor);
  }
  instance.Run();
  std::vector<double> seconds;
  for (int run = 0; run < arguments.runs; ++run) {
    const auto started = std::chrono::steady_clock::now();
    instance.Run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  std::map<std::string, Tensor> made;
  for (size_t i = 0; i < outputs.size(); ++i) made[outputs[i].name] = instance.Output(i);
  if (!arguments.outputs.empty()) WriteNpz(arguments.outputs, made);
  if (seconds.empty()) return fmt::print("{}", Ports(model));
  std::ranges::sort(seconds);
  fmt::print("{} runs: p50 {:.3f} ms, p90 {:.3f} ms\n", seconds.size(), 1e3 * seconds[seconds.size() / 2],
             1e3 * seconds[seconds.size() * 9 / 10]);
}

int Main(int argc, char** argv) {
  const std::optional<Executable> model = LoadEmbedded("/proc/self/exe");
  if (!model) throw Error(ErrorCategory::kCorrupt, "there is no model behind this program", argv[0]);
  Arguments arguments;
  CLI::App app("A model that Collage compiled.");
  app.add_option("--inputs", arguments.inputs, "File with inputs by name (.npz)");
  app.add_option("--input", arguments.single, "One input, NAME=FILE.npy; may be repeated")->allow_extra_args(false);
  app.add_option("--outputs", arguments.outputs, "File to write outputs to (.npz)");
  app.add_option("--runs", arguments.runs, "Time so many runs; inputs that are not given are random")
      ->check(CLI::PositiveNumber);
  app.footer(Ports(*model));
  CLI11_PARSE(app, argc, argv);
  Run(arguments, *model);
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  try {
    return collage::Main(argc, argv);
  } catch (const collage::Error& error) {
    std::fprintf(stderr, "%s\n", error.Format().c_str());
    return collage::ExitCode(error.category());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return collage::ExitCode(collage::ErrorCategory::kInternal);
  }
}
