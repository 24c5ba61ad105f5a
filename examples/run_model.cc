// run_model.cc: runs an executable from C++, on several threads at once: each has an instance, all share the model.
//
//     run_model_cc MODEL.clg THREADS INPUT.raw… > OUTPUTS.raw
//
// Inputs and outputs are float32. All threads compute the same; the first one's results are written.
#include <collage/runtime/stable.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

using collage::stable::Error;
using collage::stable::Executable;
using collage::stable::Instance;

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error("cannot open '" + path + "'");
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// Returns the elements of all outputs.
std::vector<float> RunOnce(const Executable& model, const std::vector<std::string>& inputs) {
  Instance run(model);
  for (size_t i = 0; i < inputs.size(); ++i) {
    run.CopyInput(i, reinterpret_cast<const float*>(inputs[i].data()), inputs[i].size() / sizeof(float));
  }
  run.Run();
  std::vector<float> results;
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    const auto output = run.Output<float>(i);
    results.insert(results.end(), output.begin(), output.end());
  }
  return results;
}

int Main(const std::vector<std::string>& args) {
  if (args.size() < 2) throw Error("usage: run_model_cc MODEL.clg THREADS INPUT.raw... > OUTPUTS.raw");
  const Executable model = Executable::Load(args[0]);
  std::vector<std::string> inputs;
  for (size_t i = 2; i < args.size(); ++i) inputs.push_back(ReadFile(args[i]));
  const auto count = static_cast<size_t>(std::max(1, std::atoi(args[1].c_str())));
  std::vector<std::vector<float>> results(count);
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        results[i] = RunOnce(model, inputs);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (const std::vector<float>& result : results) {
    if (result != results[0]) throw Error("the threads do not agree");
  }
  std::fwrite(results[0].data(), sizeof(float), results[0].size(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main({argv + 1, argv + argc});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.status();
  }
}
