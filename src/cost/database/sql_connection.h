// sql_connection.h: what the tuning database needs of an SQL server or file. Statements are written in what SQLite and
// PostgreSQL share: parameters $1, $2, … in the order of their first use, values as text both ways.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace collage {

using SqlRow = std::vector<std::string>;  ///< NULL is the empty text

/// One connection. Not thread-safe. Everything throws Error: kResource when the store cannot be reached or written,
/// kCorrupt when it is damaged.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;
  virtual std::vector<SqlRow> Query(const std::string& statement, const std::vector<std::string>& parameters = {}) = 0;
  /// Begins a transaction that no other process's `BeginExclusive` runs beside.
  virtual void BeginExclusive() = 0;
  virtual void Commit() = 0;
  virtual void RollBack() noexcept = 0;
  /// The schema's version that was set last, 0 in a new store.
  virtual int SchemaVersion() = 0;
  virtual void SetSchemaVersion(int version) = 0;
  /// Whether the store is whole: what the check found, empty when it is. A thorough check reads everything.
  virtual std::string FindDamage(bool thorough) = 0;
  virtual int64_t Bytes() = 0;
};

/// Opens or creates the SQLite file at `path`, in WAL mode.
std::unique_ptr<SqlConnection> OpenSqlite(const std::string& path);
/// Opens the SQLite file at `path`, which must exist, to be read: statements that would change it fail.
std::unique_ptr<SqlConnection> OpenSqliteForReading(const std::string& path);
/// Copies the SQLite file at `path` into memory, where it can be changed; its size is that of the file.
std::unique_ptr<SqlConnection> CopySqliteToMemory(const std::string& path);

/// Connects to `url`, "postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE". A connection that breaks is made again
/// once before a statement outside of a transaction fails. Throws kUnavailable when this build has no PostgreSQL.
std::unique_ptr<SqlConnection> OpenPostgres(const std::string& url);

/// Whether `place` is for `OpenPostgres`.
bool IsPostgresUrl(const std::string& place);
/// `url` without its password, for messages.
std::string WithoutPassword(const std::string& url);

}  // namespace collage
