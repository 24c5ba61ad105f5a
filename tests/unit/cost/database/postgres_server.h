// postgres_server.h: a PostgreSQL server for tests, in a temporary folder, reached by a socket there.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cost/database/sql_connection.h"
#include "support/file.h"

namespace collage {

class PostgresServer {
 public:
  /// The program's only server, started when first asked for; nullptr when PostgreSQL is not installed.
  static PostgresServer* Instance() {
    static PostgresServer server;
    return server.pid_ > 0 ? &server : nullptr;
  }

  /// The URL of a new, empty database.
  std::string NewDatabase() {
    const std::string name = "test" + std::to_string(++num_databases_);
    OpenPostgres(Url("postgres"))->Query("CREATE DATABASE " + name);
    return Url(name);
  }

 private:
  PostgresServer() {
    const std::string programs = "/usr/lib/postgresql/15/bin/";
    if (!std::filesystem::exists(programs + "initdb")) return;
    // The server refuses to run as root.
    const std::string as_user =
        geteuid() == 0 ? "setpriv --reuid=postgres --regid=postgres --clear-groups " : std::string();
    if (geteuid() == 0 && std::system(("chown postgres " + folder_.path().string()).c_str()) != 0) return;
    const std::string data = (folder_ / "data").string();
    const std::string make = as_user + programs + "initdb -D " + data + " -A trust -U collage --no-sync > /dev/null";
    if (std::system(make.c_str()) != 0) return;
    const std::string serve = "exec " + as_user + programs + "postgres -D " + data + " -k " + folder_.path().string() +
                              " -c listen_addresses='' -c fsync=off 2> " + (folder_ / "log").string();
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", serve.c_str(), nullptr);
      _exit(127);
    }
    for (int attempt = 0; attempt < 200; ++attempt) {
      usleep(50'000);
      try {
        OpenPostgres(Url("postgres"));
        pid_ = child;
        return;
      } catch (const std::exception&) {  // not up yet
      }
    }
    kill(child, SIGKILL);
  }
  ~PostgresServer() {
    if (pid_ <= 0) return;
    kill(pid_, SIGQUIT);
    waitpid(pid_, nullptr, 0);
  }

  std::string Url(const std::string& database) const {
    return "postgresql://collage@/" + database + "?host=" + folder_.path().string();
  }

  TemporaryFolder folder_;
  pid_t pid_ = -1;
  int num_databases_ = 0;
};

}  // namespace collage
