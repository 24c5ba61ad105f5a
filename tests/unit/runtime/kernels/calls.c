/* calls.c: a kernel that calls a library that nobody has. */
const char collage_kernel_calls[] = "nobodys|product float32 m=1|apt-get install nobodys\n";
void* collage_kernel_addresses[1];

void collage_kernel(void* const* buffers) { ((void (*)(void*))collage_kernel_addresses[0])(buffers[0]); }
