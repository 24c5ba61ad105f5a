// library_functions_test.cc: declarations of C functions; that they are called is tested in
// tests/conformance/hooks_test.cc.
#include "collage/target/library_functions.h"

#include <gtest/gtest.h>

#include <vector>

#include "unit/support/throws.h"

namespace collage {
namespace {

const LibraryFunction kScale{"libvendor.so.1", "vendor_scale", "(!llvm.ptr, i64, f32) -> i32", "install vendor"};

/// kScale with another value of one field.
LibraryFunction With(std::string LibraryFunction::*field, const std::string& value) {
  LibraryFunction changed = kScale;
  changed.*field = value;
  return changed;
}

std::string Declare(const LibraryFunction& function) { return DeclareFunctions(std::vector{function}); }

TEST(LibraryFunctions, AreDefinedAsCallsThroughTheTable) {
  const std::vector<LibraryFunction> functions{kScale, {"libvendor.so.1", "vendor_start", "() -> ()", ""}};
  EXPECT_EQ(
      DeclareFunctions(functions),
      R"(llvm.mlir.global external constant @collage_kernel_calls("file:libvendor.so.1|vendor_scale|install vendor\0A)"
      R"(file:libvendor.so.1|vendor_start|\0A\00")
llvm.mlir.global external @collage_kernel_addresses() : !llvm.array<2 x ptr> {
  %none = llvm.mlir.zero : !llvm.array<2 x ptr>
  llvm.return %none : !llvm.array<2 x ptr>
}
func.func private @vendor_scale(%a0: !llvm.ptr, %a1: i64, %a2: f32) -> i32 attributes {llvm.linkage = #llvm.linkage<internal>} {
  %table = llvm.mlir.addressof @collage_kernel_addresses : !llvm.ptr
  %slot = llvm.getelementptr %table[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  %result = llvm.call %function(%a0, %a1, %a2) : !llvm.ptr, (!llvm.ptr, i64, f32) -> i32
  return %result : i32
}
func.func private @vendor_start() attributes {llvm.linkage = #llvm.linkage<internal>} {
  %table = llvm.mlir.addressof @collage_kernel_addresses : !llvm.ptr
  %slot = llvm.getelementptr %table[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  llvm.call %function() : !llvm.ptr, () -> ()
  return
}
)");
  EXPECT_EQ(DeclareFunctions({}), "");
}

TEST(LibraryFunctions, SignaturesAreChecked) {
  for (const std::string text : {"", "i32", "(i32)", "(i32) i32", "(i32, ) -> i32", "(, i32) -> ()", "(i32 i32) -> ()",
                                 "(i8) -> ()", "(i32) -> index", "(i32) -> (i32, i32)", "(i32 -> i32"}) {
    ExpectError([&] { Declare(With(&LibraryFunction::signature, text)); }, ErrorCategory::kInput,
                "function 'vendor_scale' of 'libvendor.so.1' has the signature '" + text + "', which is none");
  }
  ExpectError([&] { Declare(With(&LibraryFunction::signature, "float")); }, ErrorCategory::kInput,
              "hint: wanted: '(TYPE, …) -> TYPE' or '(TYPE, …) -> ()'; there are: !llvm.ptr, i32, i64, f32, f64");
  EXPECT_NE(Declare(With(&LibraryFunction::signature, " ( i32,f64 )->() ")).find("(%a0: i32, %a1: f64) attributes"),
            std::string::npos);
}

TEST(LibraryFunctions, NamesAreChecked) {
  for (const std::string symbol : {"", "2nd", "a-b", "a b"}) {
    ExpectError([&] { Declare(With(&LibraryFunction::symbol, symbol)); }, ErrorCategory::kInput,
                "has no name that C could give it");
  }
  ExpectError([&] { Declare(With(&LibraryFunction::symbol, "collage_kernel")); }, ErrorCategory::kInput,
              "has a name of Collage's own functions");
  for (const std::string library : {"", "/usr/lib/libvendor.so", "a|b"}) {
    ExpectError([&] { Declare(With(&LibraryFunction::library, library)); }, ErrorCategory::kInput,
                "is in no file that could be found");
  }
  ExpectError([&] { Declare(With(&LibraryFunction::hint, "install\nit")); }, ErrorCategory::kInput,
              "has a hint of several lines");
  ExpectError(
      [&] {
        DeclareFunctions(std::vector{kScale, kScale});
      },
      ErrorCategory::kInput, "function 'vendor_scale' of 'libvendor.so.1' is declared twice");
}

TEST(LibraryFunctions, TextsAreQuoted) {
  EXPECT_NE(Declare(With(&LibraryFunction::hint, R"(say "please" \o/)")).find(R"(say \22please\22 \5Co/\0A)"),
            std::string::npos);
}

TEST(LibraryFunctions, ProbesLookForThemInAnotherProcess) {
  EXPECT_EQ(WhyFunctionsMissing(std::vector<LibraryFunction>{{"libc.so.6", "strlen", "(!llvm.ptr) -> i64", ""}}),
            std::nullopt);
  EXPECT_EQ(WhyFunctionsMissing(std::vector<LibraryFunction>{{"libc.so.6", "no_such", "() -> ()", ""}}),
            "library 'libc.so.6' lacks the symbol 'no_such'");
  EXPECT_TRUE(WhyFunctionsMissing(std::vector{kScale})
                  .value_or("found")
                  .starts_with("cannot open library 'libvendor.so.1': libvendor.so.1: cannot open shared object file"));
}

}  // namespace
}  // namespace collage
