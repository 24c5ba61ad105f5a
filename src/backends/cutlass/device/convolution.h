// convolution.h: a convolution of images as a product that is never stored. nvcc compiles this text behind behind.h.

namespace collage {

/// `Types` has what the generated text says of an instance.
template <typename Types>
struct Convolution {
  using Layout = cutlass::layout::TensorNHWC;
  using Swizzle = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<4>;
  using Kernel = typename cutlass::conv::kernel::DefaultConv2dFpropWithBroadcast<
      typename Types::Element, Layout, typename Types::Element, Layout, typename Types::Result, Layout,
      typename Types::Sum, typename Types::OperatorClass, cutlass::arch::Sm80, typename Types::Tile,
      typename Types::WarpTile, typename Types::Instruction, typename Types::Behind, Swizzle, Types::kStages,
      typename Types::Operator, cutlass::conv::IteratorAlgorithm::kOptimized, cutlass::conv::StrideSupport::kStrided,
      Types::kAlignmentA, Types::kAlignmentB>::Kernel;
  using Params = typename Kernel::Params;

  CUTLASS_HOST_DEVICE static int Int(int64_t number) { return static_cast<int>(number); }

  CUTLASS_HOST_DEVICE static Params Parameters(Arguments const& arguments) {
    Problem const& p = arguments.problem;
    cutlass::conv::Conv2dProblemSize const problem(
        Int(p.images), Int(p.height), Int(p.width), Int(p.channels), Int(p.filters), Int(p.kernel_height),
        Int(p.kernel_width), Int(p.result_height), Int(p.result_width), Int(p.before_height), Int(p.before_width),
        Int(p.stride_height), Int(p.stride_width), Int(p.dilation_height), Int(p.dilation_width),
        cutlass::conv::Mode::kCrossCorrelation);
    using Element = typename Types::Element;
    using Result = typename Types::Result;
    Layout const of_data = Layout::packed({problem.N, problem.H, problem.W, problem.C});
    Layout const of_weights = Layout::packed({problem.K, problem.R, problem.S, problem.C});
    Layout const of_result = Layout::packed({problem.N, problem.P, problem.Q, problem.K});
    typename Kernel::Arguments const given(problem, {static_cast<Element*>(const_cast<void*>(arguments.a)), of_data},
                                           {static_cast<Element*>(const_cast<void*>(arguments.b)), of_weights},
                                           {static_cast<Result*>(const_cast<void*>(arguments.other)), of_result},
                                           {static_cast<Result*>(arguments.result), of_result},
                                           {arguments.low, arguments.high}, cutlass::conv::SplitKMode::kSerial,
                                           const_cast<void*>(arguments.bias), nullptr, 0, problem.K);
    return Params(given);
  }

  CUTLASS_HOST_DEVICE static dim3 Grid(Params const& params) {
    return Swizzle::get_grid_shape(params.grid_tiled_shape);
  }
};

}  // namespace collage
