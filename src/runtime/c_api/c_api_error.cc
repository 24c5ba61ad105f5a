// c_api_error.cc: what went wrong, as C sees it; versions.
#include "runtime/c_api/c_api_error.h"

#include <exception>
#include <new>
#include <string>

#include "collage/support/error.h"

namespace collage {
namespace {

/// A thread's last error and the texts that it points to.
struct LastError {
  std::string category;
  std::string message;
  std::string where;
  std::string hint;
  std::string text;
  collage_error error{COLLAGE_OK, "", "", "", "", ""};
};

thread_local LastError last;

collage_status Keep(const Error& error) {
  last.category = ToString(error.category());
  last.message = error.message();
  last.where = error.where();
  last.hint = error.hint();
  last.text = error.Format();
  last.error = {ExitCode(error.category()), last.category.c_str(), last.message.c_str(),
                last.where.c_str(),         last.hint.c_str(),     last.text.c_str()};
  return last.error.status;
}

/// For what there may be no memory to describe.
collage_status KeepOutOfMemory() noexcept {
  last.error = {COLLAGE_ERROR_RESOURCE, "resource", "out of memory", "", "", "error: out of memory"};
  return last.error.status;
}

}  // namespace

collage_status KeepCurrentException() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      return Keep(error);
    } catch (const std::bad_alloc&) {
      return KeepOutOfMemory();
    } catch (const std::exception& error) {
      return Keep(Error(ErrorCategory::kInternal, error.what()));
    } catch (...) {
      return Keep(Error(ErrorCategory::kInternal, "an exception of unknown type"));
    }
  } catch (...) {
    return KeepOutOfMemory();  // keeping it failed
  }
}

}  // namespace collage

extern "C" {

const collage_error* collage_last_error(void) { return &collage::last.error; }

const char* collage_status_name(collage_status status) {
  switch (status) {
    case COLLAGE_OK: return "ok";
    case COLLAGE_ERROR_INPUT: return "input";
    case COLLAGE_ERROR_UNSUPPORTED: return "unsupported";
    case COLLAGE_ERROR_UNAVAILABLE: return "unavailable";
    case COLLAGE_ERROR_CORRUPT: return "corrupt";
    case COLLAGE_ERROR_RESOURCE: return "resource";
    case COLLAGE_ERROR_INTERNAL: return "internal";
    default: return "unknown";
  }
}

uint32_t collage_abi_version(void) { return COLLAGE_ABI_VERSION; }
const char* collage_version(void) { return COLLAGE_RELEASE; }

}  // extern "C"
