// bind_database.cc: the tuning database, as `collage db` shows it.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bindings.h"
#include "collage/support/error.h"
#include "cost/database/tuning_database.h"
#include "cost/database/tuning_json.h"
#include "driver/garbage_rule.h"
#include "facts.h"
#include "report/json.h"
#include "support/file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

nb::dict StatsOf(TuningDatabase& self) {
  TuningStats stats;
  {
    nb::gil_scoped_release release;
    stats = self.Stats();
  }
  nb::dict result;
  result["place"] = self.place();
  result["records"] = stats.records;
  result["failures"] = stats.failures;
  result["bytes"] = stats.bytes;
  result["by_toolchain"] = stats.by_toolchain;
  result["by_kind"] = stats.by_kind;
  return result;
}

nb::list CompilationsOf(TuningDatabase& self) {
  nb::list rows;
  for (const CompilationRecord& one : self.Compilations()) {
    nb::dict row;
    row["model"] = one.model;
    row["machine"] = one.machine;
    row["threads"] = one.num_threads;
    row["versions"] = one.versions;
    row["winner"] = one.winner;
    row["p50_seconds"] = one.seconds;
    row["additive_error_seconds"] = one.additive_error;
    row["apparent_loss_seconds"] = ToPython(FactOfJson("", "", one.apparent_loss));
    row["optimality_loss_seconds"] = one.optimality_loss;
    row["compiled_at"] = one.compiled_at;
    rows.append(row);
  }
  return rows;
}

int64_t ExportTo(TuningDatabase& self, const std::string& path) {
  nb::gil_scoped_release release;
  std::ostringstream text;
  const int64_t count = ExportRecords(self, text);
  WriteWhole(path, text.view());
  return count;
}

nb::dict CountsOf(const ImportCounts& counts) {
  nb::dict result;
  result["read"] = counts.read;
  result["taken"] = counts.taken;
  result["dropped"] = counts.dropped;
  return result;
}

nb::dict ImportFrom(TuningDatabase& self, const std::string& path) {
  ImportCounts counts;
  {
    nb::gil_scoped_release release;
    std::istringstream text(ReadFile(path));
    counts = ImportRecords(self, text, path);
  }
  return CountsOf(counts);
}

nb::dict MergeFrom(TuningDatabase& self, TuningDatabase& other) {
  ImportCounts counts;
  {
    nb::gil_scoped_release release;
    counts = MergeRecords(self, other);
  }
  return CountsOf(counts);
}

nb::tuple CheckOf(const std::string& place) {
  StoreCheck check;
  {
    nb::gil_scoped_release release;
    check = TuningDatabase::Check(place);
  }
  return nb::make_tuple(check.records, check.problems);
}

int64_t CollectFrom(TuningDatabase& self, bool other_versions, std::optional<double> older_than, bool failures) {
  nb::gil_scoped_release release;
  return self.Collect(GarbageRuleFor(other_versions, older_than, failures));
}

}  // namespace

void BindDatabase(nb::module_& m) {
  nb::class_<TuningDatabase>(m, "TuningStore", "The compiler's side of `collage.TuningDatabase`: not thread-safe.")
      .def(nb::init<std::string>(), "place"_a, "Opens or creates a file or a postgresql:// URL.")
      .def_static("existing", &TuningDatabase::OpenExisting, "place"_a, "Opens a store that exists.")
      .def_static("for_reading", &TuningDatabase::ForReading, "place"_a, "Opens one that exists, and changes no file.")
      .def_static("check", &CheckOf, "place"_a, "How many records a store has, and its problems; changes no file.")
      .def_prop_ro("place", &TuningDatabase::place, "Path or URL, without a password.")
      .def_prop_ro("notices", &TuningDatabase::notices, "Events of opening that the user should know.")
      .def("stats", &StatsOf, "Counts of records.")
      .def("compilations", &CompilationsOf, "Past compilations, each a dictionary.")
      .def("export_records", &ExportTo, "path"_a, "Writes all records to a file; how many.")
      .def("import_records", &ImportFrom, "path"_a, "Reads such a file; counts of records.")
      .def("merge", &MergeFrom, "other"_a, "Takes what is new or newer in another store; counts of records.")
      .def("gc", &CollectFrom, "other_versions"_a, "older_than"_a.none(), "failures"_a,
           "Removes records; how many. `older_than` is in seconds.");
  m.def("default_database", &TuningDatabase::DefaultPlace, "$COLLAGE_DATABASE, else tuning.db in the cache folder.");
  m.def("is_postgres_url", &IsPostgresUrl, "place"_a, "Whether a place is a server, and no file.");
}

}  // namespace collage::python
