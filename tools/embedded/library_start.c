/* library_start.c: the handle by which a shared library's destructors are known, and their call when it is closed (Itanium C++ ABI,
 * 3.3.6). */
extern void __cxa_finalize(void* handle);

__attribute__((visibility("hidden"))) void* __dso_handle = &__dso_handle;

__attribute__((destructor)) static void Finalize(void) { __cxa_finalize(__dso_handle); }
