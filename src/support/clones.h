// clones.h: loops compiled for several levels of the instruction set.
#pragma once

/// Before a function: the dynamic linker chooses among versions of it for this processor. Its loops are left to the
/// compiler to vectorise; what it calls must be inlined into it to gain.
#if defined(__x86_64__)
#define COLLAGE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define COLLAGE_CLONES
#endif
