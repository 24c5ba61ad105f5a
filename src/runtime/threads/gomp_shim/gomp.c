/* gomp.c: as much of the OpenMP runtime's binary interface as vendors' libraries call, on the process's one thread
 * pool.
 *
 * It is loaded under the name libgomp.so.1 before such a library (see runtime/threads/shared_gomp.h). Without it a
 * second team of threads would spin for work on the processors that the pool uses. The interface is the one that GCC
 * generates calls to:
 * "#pragma omp parallel" becomes GOMP_parallel, or in code of older compilers GOMP_parallel_start, a call of the body
 * and GOMP_parallel_end; a loop with a static schedule becomes calls of GOMP_loop_static_*. */
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/threads/team.h"

/* A loop that is being handed out in pieces; iterations are counted from 0. */
struct loop {
  long start, step;
  long count;
  long chunk;
  long next; /* iteration at which this thread's next chunk begins */
};

/* A region that this thread takes part in. Regions nest, and each has its own loop. */
struct region {
  struct region* outer;
  struct loop loop;
  void (*body)(void*);
  void* data;
};

static _Thread_local struct region outside; /* loops outside of every region */
static _Thread_local struct region* innermost = NULL;
static _Thread_local int num_threads_setting = 0;

static struct loop* current_loop(void) { return innermost != NULL ? &innermost->loop : &outside.loop; }

static void run_body(void* context, int index, int size) {
  (void)index;
  (void)size;
  const struct region* shared = context;
  struct region own = {.outer = innermost, .body = shared->body, .data = shared->data};
  innermost = &own;
  own.body(own.data);
  innermost = own.outer;
}

int omp_get_max_threads(void) { return num_threads_setting > 0 ? num_threads_setting : collage_num_threads(); }
int omp_get_num_threads(void) { return collage_team_size(); }
int omp_get_thread_num(void) { return collage_team_index(); }
int omp_in_parallel(void) { return collage_in_team(); }
void omp_set_num_threads(int num_threads) { num_threads_setting = num_threads > 0 ? num_threads : 1; }

static void begin(struct region* region, unsigned num_threads) {
  region->outer = innermost;
  innermost = region;
  collage_team_begin(num_threads > 0 ? (int)num_threads : omp_get_max_threads(), run_body, region);
}

static void end(void) {
  collage_team_end();
  innermost = innermost->outer;
}

void GOMP_parallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags) {
  (void)flags;
  struct region region = {.body = body, .data = data};
  begin(&region, num_threads);
  body(data);
  end();
}

void GOMP_parallel_start(void (*body)(void*), void* data, unsigned num_threads) {
  struct region* region = calloc(1, sizeof *region);
  if (region == NULL) abort();
  region->body = body;
  region->data = data;
  begin(region, num_threads);
}

void GOMP_parallel_end(void) {
  struct region* region = innermost;
  end();
  free(region);
}

void GOMP_barrier(void) { collage_team_barrier(); }

static bool hand_out(const struct loop* loop, long first, long last, long* begin, long* end) {
  if (first >= last) return false;
  *begin = loop->start + first * loop->step;
  *end = loop->start + last * loop->step;
  return true;
}

bool GOMP_loop_static_next(long* begin, long* end) {
  struct loop* loop = current_loop();
  if (loop->chunk == 0) return false; /* each thread got its share at once */
  const long first = loop->next;
  const long rest = loop->count - first;
  if (rest <= 0) return false;
  loop->next += loop->chunk * omp_get_num_threads();
  return hand_out(loop, first, first + (rest < loop->chunk ? rest : loop->chunk), begin, end);
}

bool GOMP_loop_static_start(long start, long stop, long step, long chunk, long* begin, long* end) {
  struct loop* loop = current_loop();
  loop->start = start;
  loop->step = step;
  loop->count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (loop->count < 0) loop->count = 0;
  loop->chunk = chunk > 0 ? chunk : 0;
  loop->next = loop->chunk * omp_get_thread_num();
  if (loop->chunk > 0) return GOMP_loop_static_next(begin, end);
  const long part = loop->count / omp_get_num_threads();
  const long rest = loop->count % omp_get_num_threads();
  const long index = omp_get_thread_num();
  const long first = part * index + (index < rest ? index : rest);
  return hand_out(loop, first, first + part + (index < rest ? 1 : 0), begin, end);
}

void GOMP_loop_end_nowait(void) {}

/* By this symbol UseSharedGomp tells this library from others of its name. */
const int collage_shared_gomp = 1;
