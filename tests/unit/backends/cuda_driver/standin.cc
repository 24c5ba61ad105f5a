// standin.cc: before all tests, the stand-in is where libraries are looked for, unless $COLLAGE_TEST_GPU asks for the
// driver of this machine.
#include <cstdlib>

#include "test_paths.h"

namespace collage {
namespace {

[[maybe_unused]] const bool is_set =
    std::getenv("COLLAGE_TEST_GPU") != nullptr || setenv("COLLAGE_LIBRARY_PATH", kTestStandins, 1) == 0;

}  // namespace
}  // namespace collage
