// team.h: the pool as a team of concurrent threads, what an OpenMP runtime needs of it (see gomp_shim/).
#pragma once

namespace collage {

/// Called once on each of `size` threads at the same time.
using TeamFunction = void (*)(void* context, int index, int size);

/// Runs `function` on `num_threads` threads, the caller being number 0. Within a region it runs on the caller alone.
void RunTeam(int num_threads, TeamFunction function, void* context);
/// Waits for all threads of the team; only from within RunTeam.
void TeamBarrier();
int TeamIndex();
int TeamSize();
bool InTeam();

}  // namespace collage
