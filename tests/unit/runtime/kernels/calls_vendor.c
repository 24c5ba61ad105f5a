/* calls_vendor.c: a kernel as generated code looks that calls SYMBOL of the C library LIBRARY. */
const char collage_kernel_calls[] = "file:" LIBRARY "|" SYMBOL "|install vendor 2\n";
void* collage_kernel_addresses[1];

void collage_kernel(void* const* buffers) {
  ((void (*)(const float*, float*))collage_kernel_addresses[0])(buffers[0], buffers[1]);
}
