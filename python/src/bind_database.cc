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

}  // namespace

void BindDatabase(nb::module_& m) {
  nb::class_<TuningDatabase>(m, "TuningStore", "The compiler's side of `collage.TuningDatabase`: not thread-safe.")
      .def(nb::init<std::string>(), "place"_a, "Opens or creates a file or a postgresql:// URL.")
      .def_prop_ro("place", &TuningDatabase::place, "Path or URL, without a password.")
      .def_prop_ro("notices", &TuningDatabase::notices, "Events of opening that the user should know.")
      .def("stats", &StatsOf, "Counts of records.")
      .def("compilations", &CompilationsOf, "Past compilations, each a dictionary.")
      .def("verify", &TuningDatabase::Verify, nb::call_guard<nb::gil_scoped_release>(),
           "Problems of the store and of its records.")
      .def("export_records", &ExportTo, "path"_a, "Writes all records to a file; how many.")
      .def("import_records", &ImportFrom, "path"_a, "Reads such a file; counts of records.")
      .def("merge", &MergeFrom, "other"_a, "Takes what is new or newer in another store; counts of records.");
  m.def("default_database", &TuningDatabase::DefaultPlace, "$COLLAGE_DATABASE, else tuning.db in the cache folder.");
  m.def("is_postgres_url", &IsPostgresUrl, "place"_a, "Whether a place is a server, and no file.");
}

}  // namespace collage::python
