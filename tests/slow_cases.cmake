# slow_cases.cmake: the cases that the quick preset leaves out, those that run while nothing else does, and those that share
# a process. `ctest --preset ci` runs them all. A list is named after the entries' prefix; patterns are gtest's.
#
# A case is slow if it takes more than a second of a processor (`tools/test_report` lists what takes longest), or compiles
# native kernels or whole models.

set(slow_unit.bytecode MachineTest.TailCallsRunInConstantSpaceAndDeepRecursionIsAnError)
set(slow_unit.cost TortureTest.* Stores/TuningDatabaseTest.FiftyKillsAtRandomLoseNothingFinished/Sqlite)
set(slow_unit.dataflow PatternPropertyTest.FindsWhatTheDefinitionFinds)
set(slow_unit.driver CompileModelTest.* IncompatibleToolchainsTest.AreMeasuredTimedAndChosenApart
    ToolchainPartsTest.ToolchainsThatTheUserLeftOutSayWhy UnsearchedTest.PlansShareWeights)
set(slow_unit.frontend StandardModels/*)
set(slow_unit.ir ParserTest.DepthIsNoLimitForStatements InterpreterTest.LongChainsAndLongListsNeedNoStack)
set(slow_unit.program DynamicKernelsTest.*)
set(slow_unit.search CoverSearchTest.AChainOfOneHugeCandidateAndManySmallOnesIsLinear)
set(slow_unit.pipeline PartialEvaluateTest.AFunctionThatIsGivenItselfAsDataEnds
    PartialEvaluateTest.ManyDoublingsDoNotGrowTheFunction)
foreach(part native open files search)
  set(slow_property.${part} *)
endforeach()
set(slow_conformance *)
set(slow_conformance.gpu TensorCoresTest.* CutlassDeviceTest.* TritonTest.*PatternsAgree TritonTest.TheSearchMixes* TritonTest.TilesAreSchedules
    TritonTest.EachScheduleComputesTheSame TritonDeviceTest.*)
set(slow_conformance.gpu TensorCoresTest.* TensorCoresDeathTest.* CutlassDeviceTest.*)
set(slow_conformance.native Native*)

# NAME=PATTERN: one entry each. A PostgreSQL server starts in 1 to 2 s.
set(together_unit.cost Postgres=Stores/*/Postgres)

# Entries that are no gtest cases: each compiles models, installs Collage or runs other programs for seconds.
set(slow_tests
    c_api.documentation c_api.examples c_api.programs
    cli.add_a_toolchain cli.bundle cli.compiled_programs cli.database cli.dump cli.environment cli.errors cli.flags cli.inspect cli.install
    cli.interrupted cli.json_reference cli.kernel_cache cli.liars cli.libraries cli.measuring_packs cli.option_grid cli.passes cli.quantised cli.ray
    cli.register_a_target_kind cli.removed_toolchains cli.replay cli.schedules cli.shared_costs cli.support cli.target_options
    cli.worker
    conformance.onnx conformance.onnx.open conformance.onnx.prepare
    golden.errors.damaged_executables golden.errors.native_kernels golden.errors.settings golden.mlir.bfloat16_candidates
    python.benchmark_rows python.compiling python.cuda python.documentation python.estimating python.executables python.exporting python.html_reports
    python.installed python.pass_contexts python.toolchain_hooks python.toolchains python.torch_backend python.typed_use
    python.types python.usage.examples python.virtual_machine
    report.compiled report.graph report.large report.page report.pictures
    tools.check tools.check_layers tools.check_links tools.check_words tools.symbols)
get_property(toolchains GLOBAL PROPERTY COLLAGE_TOOLCHAINS)
foreach(toolchain ${toolchains})
  list(APPEND slow_tests conformance.table.${toolchain})
endforeach()
foreach(model mnist resnet50 mobilenet_v2 efficientnet_b0 bert_base gpt2 vit_b16 squeezenet yolo lstm_tagger gru_speech
              resnet3d_18 dcgan bert_base_fp16 classifier
              any_size.ch_ppocr_mobile_v2.0_cls_infer any_size.silero_vad_v6 any_size.nmp)
  list(APPEND slow_tests models.${model})
endforeach()
