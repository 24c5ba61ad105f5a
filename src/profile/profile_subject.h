// profile_subject.h: the profile of a model with its inputs at hand.
#pragma once

#include "profile/subject.h"

namespace collage {

/// Runs `subject` some times and tells how long each step took. Its first run must be still to come, if that is to be
/// told of.
Profile ProfileSubject(RunSubject& subject, const ProfileOptions& options);

}  // namespace collage
