// postgres_connection.cc: SqlConnection on a PostgreSQL server.
#include <fmt/format.h>

#include <array>

#include "collage/support/error.h"
#include "cost/database/sql_connection.h"

#ifdef COLLAGE_POSTGRES
#include <libpq-fe.h>
#endif

namespace collage {

bool IsPostgresUrl(const std::string& place) {
  return place.starts_with("postgresql://") || place.starts_with("postgres://");
}

std::string WithoutPassword(const std::string& url) {
  const size_t user = url.find("://");
  if (user == std::string::npos) return url;
  const size_t end = url.find('/', user + 3);
  const size_t at = url.rfind('@', end);
  const size_t colon = url.find(':', user + 3);
  if (at == std::string::npos || at < user || colon == std::string::npos || colon > at) return url;
  return url.substr(0, colon) + url.substr(at);
}

#ifdef COLLAGE_POSTGRES
namespace {

// Held while a schema is made or changed; the number is "clg" in ASCII.
constexpr int kSchemaLock = 0x636c67;

class PostgresConnection : public SqlConnection {
 public:
  explicit PostgresConnection(const std::string& url) : place_(WithoutPassword(url)), connection_(Connect(url)) {
    if (PQstatus(connection_) != CONNECTION_OK) {
      const Error error(ErrorCategory::kResource, "cannot reach the tuning database: " + Message(), place_,
                        "check the URL and that the server runs, or give another one with --database");
      PQfinish(connection_);
      throw error;
    }
    PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
  }
  ~PostgresConnection() override { PQfinish(connection_); }
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  std::vector<SqlRow> Query(const std::string& statement, const std::vector<std::string>& parameters) override {
    std::vector<const char*> values;
    for (const std::string& parameter : parameters) values.push_back(parameter.c_str());
    const auto send = [&] {
      return Answer(PQexecParams(connection_, statement.c_str(), static_cast<int>(values.size()), nullptr,
                                 values.data(), nullptr, nullptr, 0));
    };
    Answer answer = send();
    if (!answer.ok() && PQstatus(connection_) == CONNECTION_BAD && !in_transaction_) {
      PQreset(connection_);
      answer = send();
    }
    if (!answer.ok()) {
      throw Error(ErrorCategory::kResource, "the tuning database refused a statement: " + Message(), place_);
    }
    return answer.Rows();
  }

  void BeginExclusive() override {
    Query("BEGIN", {});
    in_transaction_ = true;
    Query(fmt::format("SELECT pg_advisory_xact_lock({})", kSchemaLock), {});
  }
  void Commit() override {
    Query("COMMIT", {});
    in_transaction_ = false;
  }
  void RollBack() noexcept override {
    const Answer ignored(PQexec(connection_, "ROLLBACK"));
    in_transaction_ = false;
  }

  int SchemaVersion() override {
    // Read from the catalogue's rows: what to_regclass remembers may be from before another process's commit.
    const char* find =
        "SELECT 1 FROM pg_tables WHERE tablename = 'collage_schema' AND schemaname = ANY(current_schemas(false))";
    if (Query(find, {}).empty()) return 0;
    const std::vector<SqlRow> rows = Query("SELECT version FROM collage_schema", {});
    return rows.empty() ? 0 : std::stoi(rows[0][0]);
  }
  void SetSchemaVersion(int version) override {
    Query("CREATE TABLE IF NOT EXISTS collage_schema (version INTEGER NOT NULL)", {});
    Query("DELETE FROM collage_schema", {});
    Query("INSERT INTO collage_schema VALUES ($1)", {std::to_string(version)});
  }

  /// The server answers for its files; whether they can be read is what can be asked.
  std::string FindDamage(bool thorough) override {
    if (thorough) Query("SELECT COUNT(*) FROM timing", {});
    return "";
  }
  int64_t Bytes() override { return std::stoll(Query("SELECT pg_database_size(current_database())", {})[0][0]); }

 private:
  /// A result, cleared with its scope.
  class Answer {
   public:
    explicit Answer(PGresult* result) : result_(result, &PQclear) {}
    bool ok() const {
      const ExecStatusType status = PQresultStatus(result_.get());
      return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    }
    std::vector<SqlRow> Rows() const {
      std::vector<SqlRow> rows(static_cast<size_t>(PQntuples(result_.get())));
      for (size_t i = 0; i < rows.size(); ++i) {
        for (int column = 0; column < PQnfields(result_.get()); ++column) {
          rows[i].emplace_back(PQgetvalue(result_.get(), static_cast<int>(i), column));
        }
      }
      return rows;
    }

   private:
    std::unique_ptr<PGresult, decltype(&PQclear)> result_;
  };

  /// A server that does not answer is given up after ten seconds, unless the URL says otherwise.
  static PGconn* Connect(const std::string& url) {
    const std::array<const char*, 3> names{"connect_timeout", "dbname", nullptr};
    const std::array<const char*, 3> values{"10", url.c_str(), nullptr};
    return PQconnectdbParams(names.data(), values.data(), /*expand_dbname=*/1);
  }

  /// The server's or the library's last message, on one line.
  std::string Message() const {
    std::string text = PQerrorMessage(connection_);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    for (char& c : text) {
      if (c == '\n' || c == '\t') c = ' ';
    }
    return text;
  }

  std::string place_;
  PGconn* connection_;
  bool in_transaction_ = false;
};

}  // namespace

std::unique_ptr<SqlConnection> OpenPostgres(const std::string& url) {
  return std::make_unique<PostgresConnection>(url);
}

#else

std::unique_ptr<SqlConnection> OpenPostgres(const std::string& url) {
  throw Error(ErrorCategory::kUnavailable, "this build of Collage has no PostgreSQL", WithoutPassword(url),
              "build it where libpq-dev is installed");
}

#endif

}  // namespace collage
