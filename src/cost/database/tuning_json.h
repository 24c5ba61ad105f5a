// tuning_json.h: records of the tuning database as lines of JSON, to carry them from one store to another.
//
// The first line is {"format": "collage-tuning", "version": 2}; each other line is one record: its key's fields as
// "key" (tuning_key.h), and its own (record_fields.h). Fields that were added later may be missing, so that a file can
// be read by older and newer versions. Files of version 1 are read, too.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <ostream>
#include <string>

#include "cost/database/tuning_database.h"

namespace collage {

/// How many records were written. Throws kResource when `out` fails.
int64_t ExportRecords(TuningDatabase& database, std::ostream& out);

struct ImportCounts {
  int64_t read = 0;
  int64_t taken = 0;                       ///< the others were there already, as new or newer, or were dropped
  std::map<std::string, int64_t> dropped;  ///< records of version 1 that cannot be translated, by reason
};
/// Takes what is new or newer. Throws kInput that names `source` and the line; what came before it is kept.
ImportCounts ImportRecords(TuningDatabase& database, std::istream& in, const std::string& source);

/// Takes what is new or newer in `from`.
ImportCounts MergeRecords(TuningDatabase& into, TuningDatabase& from);

}  // namespace collage
