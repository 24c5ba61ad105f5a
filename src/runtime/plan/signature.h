// signature.h: signatures of executables, by Ed25519 (RFC 8032). A signature is a file beside the executable, whose 64
// bytes are over all bytes of the executable, so that other programs can make and check it, too (SECURITY.md).
//
// Keys are PEM files, as `openssl genpkey -algorithm ed25519` writes them. The library for all this, OpenSSL's
// libcrypto, is opened when it is first needed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace collage {

/// The file that has the signature of an executable: "model.clg.sig".
std::filesystem::path SignatureFileOf(const std::filesystem::path& executable);

/// Signs the file `executable` by the private key in the file `key`, writes the signature beside it, and returns its
/// place. Throws kInput for what is no such key, kUnavailable where the library is missing.
std::filesystem::path SignFile(const std::filesystem::path& executable, const std::filesystem::path& key);

/// From now on this process loads only what is signed by the owner of the public key in the file `key`. This cannot be
/// taken back, and a second key is kInput. Throws as SignFile.
void RequireSignatures(const std::filesystem::path& key);

/// Throws if signatures are required, and the file beside `executable` is none of `bytes`: kInput where there is none,
/// kCorrupt where it is another one. Thread-safe.
void CheckSignature(std::span<const std::byte> bytes, const std::filesystem::path& executable);

/// Throws kInput if signatures are required: bytes that a caller has in memory, called `name`, have none.
void RefuseUnsigned(const std::string& name);

}  // namespace collage
