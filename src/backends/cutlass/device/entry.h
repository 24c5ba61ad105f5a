// entry.h: the kernels of an image. nvcc compiles this text last, behind the generated `Instance`.

/// Writes how collage_run is launched for `arguments`. One thread calls it.
extern "C" __global__ void collage_prepare(collage::Arguments arguments, collage::Prepared* prepared) {
  using Kernel = Instance::Kernel;
  static_assert(sizeof(Kernel::Params) <= collage::Prepared::kMostParameterBytes, "parameters of a kernel have 4 KiB");
  Kernel::Params const params = Instance::Parameters(arguments);
  dim3 const grid = Instance::Grid(params);
  prepared->grid[0] = grid.x;
  prepared->grid[1] = grid.y;
  prepared->grid[2] = grid.z;
  prepared->threads = Kernel::kThreadCount;
  prepared->shared_bytes = sizeof(Kernel::SharedStorage);
  prepared->parameter_bytes = sizeof(Kernel::Params);
  memcpy(prepared->parameters, &params, sizeof params);
}

extern "C" __global__ void __launch_bounds__(Instance::Kernel::kThreadCount)
    collage_run(__grid_constant__ Instance::Kernel::Params const params) {
  extern __shared__ __align__(16) unsigned char shared[];
  Instance::Kernel kernel;
  kernel(params, *reinterpret_cast<Instance::Kernel::SharedStorage*>(shared));
}

/// Moves what a block of collage_move does, through memory that its threads share.
template <typename T>
__device__ void MoveTile(collage::Move const& move) {
  constexpr int kEdge = collage::Move::kEdge;
  __shared__ T tile[kEdge][kEdge + 1];  // [channel][pixel]
  T const* const from = static_cast<T const*>(move.from);
  T* const to = static_cast<T*>(move.to);
  int64_t const plain = blockIdx.z * move.channels * move.pixels, last = blockIdx.z * move.pixels * move.stored;
  int64_t const first_pixel = int64_t(blockIdx.x) * kEdge, first_channel = int64_t(blockIdx.y) * kEdge;
  int const inner = threadIdx.x % kEdge;
  for (int outer = threadIdx.x / kEdge; outer < kEdge; outer += collage::Move::kThreads / kEdge) {
    if (move.to_channels_last) {
      int64_t const channel = first_channel + outer, pixel = first_pixel + inner;
      bool const is_there = channel < move.channels && pixel < move.pixels;
      tile[outer][inner] = is_there ? from[plain + channel * move.pixels + pixel] : T(0);
    } else {
      int64_t const channel = first_channel + inner, pixel = first_pixel + outer;
      bool const is_there = channel < move.channels && pixel < move.pixels;
      tile[inner][outer] = is_there ? from[last + pixel * move.stored + channel] : T(0);
    }
  }
  __syncthreads();
  for (int outer = threadIdx.x / kEdge; outer < kEdge; outer += collage::Move::kThreads / kEdge) {
    if (move.to_channels_last) {
      int64_t const channel = first_channel + inner, pixel = first_pixel + outer;
      if (channel < move.stored && pixel < move.pixels) to[last + pixel * move.stored + channel] = tile[inner][outer];
    } else {
      int64_t const channel = first_channel + outer, pixel = first_pixel + inner;
      if (channel < move.channels && pixel < move.pixels)
        to[plain + channel * move.pixels + pixel] = tile[outer][inner];
    }
  }
}

extern "C" __global__ void __launch_bounds__(collage::Move::kThreads) collage_move(collage::Move move) {
  if (move.element_bytes == 1) return MoveTile<uint8_t>(move);
  if (move.element_bytes == 2) return MoveTile<uint16_t>(move);
  MoveTile<uint32_t>(move);
}
