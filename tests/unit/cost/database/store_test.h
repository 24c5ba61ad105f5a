// store_test.h: a fixture for tests that run on both kinds of store.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/file.h"
#include "unit/cost/database/postgres_server.h"

namespace collage {

enum class Store { kSqlite, kPostgres };

/// Has an empty place for a tuning database.
class StoreTest : public testing::TestWithParam<Store> {
 protected:
  void SetUp() override {
    if (GetParam() == Store::kSqlite) {
      place_ = (folder_ / "tuning.db").string();
      return;
    }
    if (PostgresServer::Instance() == nullptr) GTEST_SKIP() << "PostgreSQL 15 is not installed";
    place_ = PostgresServer::Instance()->NewDatabase();
  }

  /// The store itself, without what a TuningDatabase does when it opens.
  std::unique_ptr<SqlConnection> OpenStore() const {
    return IsPostgresUrl(place_) ? OpenPostgres(place_) : OpenSqlite(place_);
  }

  TemporaryFolder folder_;
  std::string place_;
};

inline std::string NameOfStore(const testing::TestParamInfo<Store>& test) {
  return test.param == Store::kSqlite ? "Sqlite" : "Postgres";
}

}  // namespace collage
