/* add.c: a kernel as generated code looks: out[i] = in[i] + amount[0] + AMOUNT over 1000 elements, in parallel. The
 * macro makes objects of equal structure that differ in what they compute. */
#include <stdint.h>

void collage_parallel_for(int64_t count, void (*body)(void*, int64_t, int64_t), void* context);

static void body(void* context, int64_t begin, int64_t end) {
  void* const* buffers = context;
  const float* in = buffers[0];
  const float* amount = buffers[1];
  float* out = buffers[2];
  for (int64_t i = begin; i < end; ++i) out[i] = in[i] + amount[0] + AMOUNT;
  if (begin == 0 && buffers[3]) *(float*)buffers[3] = in[0];
}

void collage_kernel(void* const* buffers) { collage_parallel_for(1000, body, (void*)buffers); }
