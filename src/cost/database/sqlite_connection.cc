// sqlite_connection.cc: SqlConnection on a SQLite file.
#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <regex>
#include <string>
#include <thread>

#include "collage/support/error.h"
#include "cost/database/sql_connection.h"

namespace collage {
namespace {

constexpr int kBusyTimeoutMs = 30'000;

class SqliteConnection : public SqlConnection {
 public:
  enum class Mode : uint8_t { kReadWrite, kRead, kCopy };

  SqliteConnection(const std::string& path, Mode mode) : path_(path) {
    try {
      switch (mode) {
        case Mode::kReadWrite: OpenToWrite(); break;
        case Mode::kRead: OpenToRead(); break;
        case Mode::kCopy: Copy(); break;
      }
    } catch (const Error&) {
      sqlite3_close(handle_);
      throw;
    }
  }
  ~SqliteConnection() override { sqlite3_close(handle_); }
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  std::vector<SqlRow> Query(const std::string& text, const std::vector<std::string>& parameters) override {
    const Statement statement(*this, text);
    int index = 0;
    for (const std::string& parameter : parameters) {
      sqlite3_bind_text(statement.get(), ++index, parameter.data(), static_cast<int>(parameter.size()), SQLITE_STATIC);
    }
    std::vector<SqlRow> rows;
    for (;;) {
      const int code = sqlite3_step(statement.get());
      if (code == SQLITE_DONE) return rows;
      if (code != SQLITE_ROW) Fail(code, sqlite3_stmt_readonly(statement.get()) != 0 ? "read" : "write");
      SqlRow row;
      for (int column = 0; column < sqlite3_column_count(statement.get()); ++column) {
        // Text of a REAL column would be cut to 15 digits.
        if (sqlite3_column_type(statement.get(), column) == SQLITE_FLOAT) {
          row.push_back(fmt::format("{:.17g}", sqlite3_column_double(statement.get(), column)));
          continue;
        }
        const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), column));
        row.emplace_back(value == nullptr ? "" : value);
      }
      rows.push_back(std::move(row));
    }
  }

  void BeginExclusive() override { Query("BEGIN IMMEDIATE", {}); }
  void Commit() override { Query("COMMIT", {}); }
  void RollBack() noexcept override { sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr); }
  int SchemaVersion() override { return std::stoi(First("PRAGMA user_version")); }
  void SetSchemaVersion(int version) override { Query(fmt::format("PRAGMA user_version = {}", version), {}); }

  /// Pages that could not be read are not damaged: that is thrown, as kResource.
  std::string FindDamage(bool thorough) override {
    const std::string found = First(thorough ? "PRAGMA integrity_check" : "PRAGMA quick_check");
    if (found == "ok") return "";
    static const std::regex code_of("error code[ =](\\d+)");
    std::smatch match;
    if (std::regex_search(found, match, code_of)) {
      const int code = std::stoi(match[1].str());
      const int kind = code & 0xff;
      if (kind == SQLITE_IOERR || kind == SQLITE_NOMEM) {
        throw Error(ErrorCategory::kResource, fmt::format("cannot read the tuning database: {}", sqlite3_errstr(code)),
                    path_);
      }
    }
    return found;
  }

  int64_t Bytes() override {
    int64_t bytes = 0;  // also of a copy, the file's
    for (const char* suffix : {"", "-wal"}) {
      std::error_code missing;
      const auto size = std::filesystem::file_size(path_ + suffix, missing);
      if (!missing) bytes += static_cast<int64_t>(size);
    }
    return bytes;
  }

 private:
  void Open(const char* name, int flags) {
    const int code = sqlite3_open_v2(name, &handle_, flags, nullptr);
    if (code != SQLITE_OK) Fail(code, "open");
    sqlite3_busy_timeout(handle_, kBusyTimeoutMs);
  }

  void OpenToWrite() {
    Open(path_.c_str(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (sqlite3_db_readonly(handle_, "main") == 1) {
      throw Error(ErrorCategory::kResource, "the tuning database is read-only", path_,
                  "give another one with --database PATH, or make this one writable");
    }
    UseWriteAheadLog();
    Query("PRAGMA synchronous = NORMAL");
  }

  /// A connection that could not write would leave the files of the write-ahead log behind, so this one only does not.
  void OpenToRead() {
    Open(path_.c_str(), SQLITE_OPEN_READWRITE);
    Query("PRAGMA query_only = ON");
  }

  void Copy() {
    const SqliteConnection file(path_, Mode::kRead);
    Open(":memory:", SQLITE_OPEN_READWRITE);
    sqlite3_backup* backup = sqlite3_backup_init(handle_, "main", file.handle_, "main");
    if (backup == nullptr) Fail(sqlite3_errcode(handle_), "copy");
    sqlite3_backup_step(backup, /*nPage=*/-1);
    const int code = sqlite3_backup_finish(backup);
    if (code != SQLITE_OK) Fail(code, "copy");
  }

  /// Several processes that change the mode of a new file at once would wait for each other for ever. SQLite then fails
  /// in one of them without asking the busy handler: it is tried again, unless another has changed it by then.
  void UseWriteAheadLog() {
    const auto started = std::chrono::steady_clock::now();
    while (First("PRAGMA journal_mode") != "wal") {
      const int code = sqlite3_exec(handle_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
      if (code == SQLITE_OK) return;
      const auto waited = std::chrono::steady_clock::now() - started;
      if (code != SQLITE_BUSY || waited > std::chrono::milliseconds(kBusyTimeoutMs)) Fail(code, "write");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  /// A prepared statement, finalised with its scope.
  class Statement {
   public:
    Statement(SqliteConnection& connection, const std::string& text) {
      const int code = sqlite3_prepare_v2(connection.handle_, text.c_str(), -1, &statement_, nullptr);
      if (code != SQLITE_OK) connection.Fail(code, "prepare a statement for");
    }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    sqlite3_stmt* get() const { return statement_; }

   private:
    sqlite3_stmt* statement_ = nullptr;
  };

  std::vector<SqlRow> Query(const std::string& text) { return Query(text, {}); }

  /// The first column of a query's first row.
  std::string First(const std::string& text) {
    const std::vector<SqlRow> rows = Query(text, {});
    return rows.empty() || rows[0].empty() ? "" : rows[0][0];
  }

  [[noreturn]] void Fail(int code, const std::string& doing) const {
    const std::string detail = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
    const int kind = code & 0xff;
    const bool is_damage = kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB;
    throw Error(is_damage ? ErrorCategory::kCorrupt : ErrorCategory::kResource,
                fmt::format("cannot {} the tuning database: {}", doing, detail), path_,
                "give another one with --database PATH");
  }

  std::string path_;
  sqlite3* handle_ = nullptr;
};

}  // namespace

std::unique_ptr<SqlConnection> OpenSqlite(const std::string& path) {
  return std::make_unique<SqliteConnection>(path, SqliteConnection::Mode::kReadWrite);
}

std::unique_ptr<SqlConnection> OpenSqliteForReading(const std::string& path) {
  return std::make_unique<SqliteConnection>(path, SqliteConnection::Mode::kRead);
}

std::unique_ptr<SqlConnection> CopySqliteToMemory(const std::string& path) {
  return std::make_unique<SqliteConnection>(path, SqliteConnection::Mode::kCopy);
}

}  // namespace collage
