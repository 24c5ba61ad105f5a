// left_out.cc: a decorator, for the names in the bundle's list.
#include "target/left_out.h"

#include <fmt/format.h>

#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "collage/support/error.h"
#include "support/dynamic_library.h"
#include "support/file.h"
#include "target/forwarding_toolchain.h"

namespace collage {
namespace {

class LeftOut : public ForwardingToolchain {
 public:
  explicit LeftOut(std::unique_ptr<Toolchain> toolchain)
      : ForwardingToolchain(*toolchain), own_(std::move(toolchain)) {}

  /// Its files may have been added since.
  Availability Probe() const override {
    Availability here = own_->Probe();
    if (here.available) return here;
    return {false, "", "this bundle was made without it",
            fmt::format("`collage bundle --toolchains {}` makes one that has it", name())};
  }

 private:
  std::unique_ptr<Toolchain> own_;
};

std::set<std::string> ReadLeftOut() {
  std::set<std::string> names;
  const auto file = FindBesideModules(kLeftOutFile);
  if (!file) return names;
  try {
    std::istringstream lines(ReadFile(*file));
    for (std::string line; std::getline(lines, line);) names.insert(line);
  } catch (const Error&) {  // toolchains then give reasons of their own
  }
  return names;
}

}  // namespace

std::unique_ptr<Toolchain> UnlessLeftOut(std::unique_ptr<Toolchain> toolchain) {
  if (!ReadLeftOut().contains(toolchain->name())) return toolchain;
  return std::make_unique<LeftOut>(std::move(toolchain));
}

}  // namespace collage
