/* library_start.c: what a shared library with a model has beside the runtime and the model, since it is linked without
 * a compiler: the function that loads the model, and what a compiler's start-up files would bring. */
#include <collage/runtime/c_api.h>

extern const unsigned char embedded_begin[] __attribute__((visibility("hidden")));
extern const unsigned char embedded_end[] __attribute__((visibility("hidden")));

/* Its name becomes that of the model. A function, since programs would copy the data of a library that they name. */
collage_status embedded_load(collage_executable** executable) {
  return collage_executable_load_static(embedded_begin, (size_t)(embedded_end - embedded_begin), "the model",
                                        executable);
}

/* The handle by which the library's destructors are known, and their call when it is closed (Itanium C++ ABI, 3.3.6).
 */
extern void __cxa_finalize(void* handle);
__attribute__((visibility("hidden"))) void* __dso_handle = &__dso_handle;
__attribute__((destructor)) static void Finalize(void) { __cxa_finalize(__dso_handle); }
