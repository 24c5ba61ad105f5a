// team_watch.h: when each thread of the pool worked in a parallel region, for profiles.
#pragma once

#include <chrono>
#include <vector>

namespace collage {

/// A thread's share of a region of the pool (team.h).
struct TeamShare {
  int thread = 0;  ///< its number in the team: 0 is the thread that began the region
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

/// From now on, appends the shares of each region that the calling thread begins to `shares`, once the region has
/// ended; null: no longer. Regions of several threads only: a region of one is part of what the thread does.
void WatchTeams(std::vector<TeamShare>* shares);

}  // namespace collage
