/* vendor.h: what a vendor ships: kernels as C functions. */
#ifndef VENDOR_NN_H_
#define VENDOR_NN_H_

#include <stdint.h>

/* Softmax of each of num_rows rows of row_size numbers, each multiplied by scale before. output may be input. */
void vnn_softmax_f32(const float* input, int32_t num_rows, int32_t row_size, float scale, float* output);

/* The same with a polynomial for the exponential function, exact to about 1e-6 of each result. */
void vnn_softmax_fast_f32(const float* input, int32_t num_rows, int32_t row_size, float scale, float* output);

#endif
