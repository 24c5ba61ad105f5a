// man_pages.h: manual pages of the commands.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>

namespace collage::cli {

/// Writes a page for `app` and for each of its commands into `folder`, which is made: collage.1, collage-db.1, … Throws
/// kResource where that fails.
void WriteManPages(const CLI::App& app, const std::filesystem::path& folder);

}  // namespace collage::cli
