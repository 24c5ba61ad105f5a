// clones.h: loops compiled for several levels of the instruction set.
#pragma once

/// Before a function: the dynamic linker chooses among versions of it for this processor. Its loops are left to the
/// compiler to vectorise; what it calls must be inlined into it to gain.
///
/// Clang before 19 has no names for these levels, and makes one version.
#if defined(__x86_64__) && (!defined(__clang__) || __clang_major__ >= 19)
#define COLLAGE_HAS_CLONES
#endif
#ifdef COLLAGE_HAS_CLONES
#define COLLAGE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define COLLAGE_CLONES
#endif

namespace collage {

/// Vectors of so many numbers. `using` would lose the attribute in templates.
template <typename T, int lanes>
struct Lanes {
  typedef T Of __attribute__((vector_size(lanes * sizeof(T))));
};

/// Bytes of a vector register in the clone that runs here. Wider vectors would be computed number by number, or go
/// through memory.
inline int RegisterBytes() {
#ifdef COLLAGE_HAS_CLONES
  if (__builtin_cpu_supports("x86-64-v4")) return 64;
  if (__builtin_cpu_supports("x86-64-v3")) return 32;
#endif
  return 16;
}

}  // namespace collage
