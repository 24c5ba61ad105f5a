/* vendor.c: see vendor.h. */
#include "vendor.h"

#include <math.h>
#include <string.h>

/* 2^k for -126 <= k <= 127, by the bits of its exponent. */
static float power_of_two(int32_t k) {
  const int32_t bits = (k + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/* e^x for x <= 0: 2^k times the Taylor polynomial of e^r, where x = k ln 2 + r and |r| <= ln 2 / 2. Compilers make
 * vector instructions of it. */
static float fast_exp(float x) {
  const float bounded = x < -87.0f ? -87.0f : x;
  const int32_t k = (int32_t)(bounded * 1.44269504f - 0.5f);
  const float r = bounded - (float)k * 0.693145752f - (float)k * 1.42860677e-6f; /* ln 2 in two parts */
  return power_of_two(k) *
         (1.0f + r * (1.0f + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r / 720))))));
}

static float scaled_max(const float* row, int32_t size, float scale) {
  float max = scale * row[0];
  for (int32_t i = 1; i < size; ++i) max = scale * row[i] > max ? scale * row[i] : max;
  return max;
}

static void divide_by_sum(float* row, int32_t size) {
  float sum = 0;
  for (int32_t i = 0; i < size; ++i) sum += row[i];
  for (int32_t i = 0; i < size; ++i) row[i] /= sum;
}

void vnn_softmax_f32(const float* input, int32_t num_rows, int32_t row_size, float scale, float* output) {
  if (row_size == 0) return;
  for (int32_t row = 0; row < num_rows; ++row, input += row_size, output += row_size) {
    const float max = scaled_max(input, row_size, scale);
    for (int32_t i = 0; i < row_size; ++i) output[i] = expf(scale * input[i] - max);
    divide_by_sum(output, row_size);
  }
}

void vnn_softmax_fast_f32(const float* input, int32_t num_rows, int32_t row_size, float scale, float* output) {
  if (row_size == 0) return;
  for (int32_t row = 0; row < num_rows; ++row, input += row_size, output += row_size) {
    const float max = scaled_max(input, row_size, scale);
    for (int32_t i = 0; i < row_size; ++i) output[i] = fast_exp(scale * input[i] - max);
    divide_by_sum(output, row_size);
  }
}
