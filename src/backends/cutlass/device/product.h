// product.h: a batch of products of matrices. nvcc compiles this text behind behind.h.

namespace collage {

/// CUTLASS's epilogue with a broadcast vector, for sums of tensor cores and of scalar arithmetic.
template <typename Base, typename Operation, typename OperatorClass>
struct EpilogueOf {
  using Epilogue = typename cutlass::epilogue::threadblock::DefaultEpilogueWithBroadcastTensorOp<
      typename Base::Shape, typename Base::WarpMmaOperator, Base::kPartitionsK, typename Operation::ElementOutput,
      typename Operation::ElementT, typename Operation::ElementVector, Operation, Base::kElementsPerAccess>::Epilogue;
};
template <typename Base, typename Operation>
struct EpilogueOf<Base, Operation, cutlass::arch::OpClassSimt> {
  using Epilogue = typename cutlass::epilogue::threadblock::DefaultEpilogueWithBroadcastSimt<
      typename Base::Shape, typename Base::WarpMmaOperator, typename Operation::ElementOutput,
      typename Operation::ElementT, typename Operation::ElementVector, Operation, Base::kElementsPerAccess>::Epilogue;
};

/// `Types` has what the generated text says of an instance.
template <typename Types>
struct Product {
  using Swizzle = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>;
  using Base = typename cutlass::gemm::kernel::DefaultGemmUniversal<
      typename Types::Element, typename Types::LayoutA, cutlass::ComplexTransform::kNone, Types::kAlignmentA,
      typename Types::Element, typename Types::LayoutB, cutlass::ComplexTransform::kNone, Types::kAlignmentB,
      typename Types::Result, cutlass::layout::RowMajor, typename Types::Sum, typename Types::OperatorClass,
      cutlass::arch::Sm80, typename Types::Tile, typename Types::WarpTile, typename Types::Instruction,
      typename Types::Behind, Swizzle, Types::kStages, typename Types::Operator>::GemmKernel;
  using Epilogue =
      typename EpilogueOf<typename Base::Epilogue, typename Types::Behind, typename Types::OperatorClass>::Epilogue;
  using Kernel = cutlass::gemm::kernel::GemmWithFusedEpilogue<typename Base::Mma, Epilogue, Swizzle>;
  using Params = typename Kernel::Params;

  CUTLASS_HOST_DEVICE static Params Parameters(Arguments const& arguments) {
    Problem const& problem = arguments.problem;
    int const n = static_cast<int>(problem.n);
    Params params;
    params.problem_size = {static_cast<int>(problem.m), n, static_cast<int>(problem.k)};
    params.grid_tiled_shape = Swizzle::get_tiled_shape(
        params.problem_size, {Types::Tile::kM, Types::Tile::kN, Types::Tile::kK}, static_cast<int>(problem.batch));
    params.swizzle_log_tile = Swizzle::get_log_tile(params.grid_tiled_shape);
    params.mode =
        problem.batch == 1 ? cutlass::gemm::GemmUniversalMode::kGemm : cutlass::gemm::GemmUniversalMode::kBatched;
    params.batch_count = static_cast<int>(problem.batch);
    params.gemm_k_size = static_cast<int>(problem.k);
    params.params_A = typename Kernel::Mma::IteratorA::Params(typename Types::LayoutA(problem.lda));
    params.params_B = typename Kernel::Mma::IteratorB::Params(typename Types::LayoutB(problem.ldb));
    params.params_C = typename Epilogue::OutputTileIterator::Params(cutlass::layout::RowMajor(n));
    params.params_D = params.params_C;
    params.params_Tensor = typename Epilogue::TensorTileIterator::Params(cutlass::layout::RowMajor(n));
    params.output_op = {arguments.low, arguments.high};
    params.ptr_A = const_cast<void*>(arguments.a);
    params.ptr_B = const_cast<void*>(arguments.b);
    params.ptr_C = const_cast<void*>(arguments.other);
    params.ptr_D = arguments.result;
    params.ptr_Vector = const_cast<void*>(arguments.bias);
    params.ldr = 0;
    params.ptr_Tensor = nullptr;
    params.batch_stride_A = problem.stride_a;
    params.batch_stride_B = problem.stride_b;
    params.batch_stride_C = problem.m * problem.n;
    params.batch_stride_D = problem.m * problem.n;
    params.batch_stride_Vector = 0;
    params.batch_stride_Tensor = 0;
    return params;
  }

  CUTLASS_HOST_DEVICE static dim3 Grid(Params const& params) {
    return Swizzle::get_grid_shape(params.grid_tiled_shape);
  }
};

}  // namespace collage
