/* team.h: the pool as a team of concurrent threads, in C because an OpenMP runtime is built on it (see gomp_shim/).
 *
 * One team runs at a time; a team that is begun within another consists of the beginning thread alone. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Runs on `size` threads at the same time, with `index` from 0 to size - 1. Must not throw. */
typedef void (*collage_team_function)(void* context, int index, int size);

/* Starts `function` on threads 1 … size - 1 and makes the caller thread 0 of that team, which then does its own share.
 * The team has at most `num_threads` threads. Every call needs its collage_team_end, on the same thread; `context`
 * lives until then. */
void collage_team_begin(int num_threads, collage_team_function function, void* context);
/* Waits until all other threads of the team are done. */
void collage_team_end(void);
/* Waits for all threads of the team. */
void collage_team_barrier(void);

/* Of the calling thread: its place in its team, the team's size, whether it is in one. Outside: 0, 1, 0. */
int collage_team_index(void);
int collage_team_size(void);
int collage_in_team(void);

/* NumThreads() for C. */
int collage_num_threads(void);

#ifdef __cplusplus
}
#endif
