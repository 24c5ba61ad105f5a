// standin.cc: before all tests, stand-ins are where libraries and modules of Python are looked for, unless
// $COLLAGE_TEST_GPU asks for the driver and libraries of this machine.
#include <cstdlib>
#include <string>

#include "test_paths.h"

namespace collage {
namespace {

[[maybe_unused]] const bool is_set =
    std::getenv("COLLAGE_TEST_GPU") != nullptr ||
    (setenv("COLLAGE_LIBRARY_PATH", kTestStandins, 1) == 0 &&
     setenv("PYTHONPATH", (std::string(kTestData) + "/standins/python").c_str(), 1) == 0);

}  // namespace
}  // namespace collage
