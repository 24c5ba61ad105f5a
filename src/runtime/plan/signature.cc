// signature.cc: what is asked of libcrypto, whose functions are declared here: it need not be there to build.
#include "runtime/plan/signature.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collage/support/error.h"
#include "support/dynamic_library.h"
#include "support/file.h"

namespace collage {
namespace {

constexpr const char* kLibrary = "libcrypto.so.3";
constexpr size_t kSignatureBytes = 64;  // RFC 8032, section 5.1.6
constexpr int kEd25519 = 1087;          // EVP_PKEY_ED25519 of openssl/evp.h

// Types of openssl/types.h, which only the library looks into.
struct Bio;
struct KeyObject;
struct DigestContext;

/// Functions of openssl/bio.h, openssl/pem.h and openssl/evp.h, with their parameters.
struct Crypto {
  Bio* (*new_buffer)(const void* bytes, int size);
  int (*free_bio)(Bio*);
  KeyObject* (*read_private)(Bio*, KeyObject**, void* ask_password, void*);
  KeyObject* (*read_public)(Bio*, KeyObject**, void* ask_password, void*);
  int (*kind_of)(const KeyObject*);
  void (*free_key)(KeyObject*);
  DigestContext* (*new_context)();
  void (*free_context)(DigestContext*);
  int (*begin_signing)(DigestContext*, void**, const void* digest, void* engine, KeyObject*);
  int (*sign)(DigestContext*, unsigned char* signature, size_t* size, const unsigned char* bytes, size_t num_bytes);
  int (*begin_checking)(DigestContext*, void**, const void* digest, void* engine, KeyObject*);
  int (*check)(DigestContext*, const unsigned char* signature, size_t size, const unsigned char* bytes,
               size_t num_bytes);
};

template <typename Function>
void Find(Function*& function, const char* symbol) {
  function = reinterpret_cast<Function*>(FindLibrarySymbol(kLibrary, symbol));
}

Crypto Open() {
  Crypto crypto{};
  Find(crypto.new_buffer, "BIO_new_mem_buf");
  Find(crypto.free_bio, "BIO_free");
  Find(crypto.read_private, "PEM_read_bio_PrivateKey");
  Find(crypto.read_public, "PEM_read_bio_PUBKEY");
  Find(crypto.kind_of, "EVP_PKEY_get_id");
  Find(crypto.free_key, "EVP_PKEY_free");
  Find(crypto.new_context, "EVP_MD_CTX_new");
  Find(crypto.free_context, "EVP_MD_CTX_free");
  Find(crypto.begin_signing, "EVP_DigestSignInit");
  Find(crypto.sign, "EVP_DigestSign");
  Find(crypto.begin_checking, "EVP_DigestVerifyInit");
  Find(crypto.check, "EVP_DigestVerify");
  return crypto;
}

/// The library's functions. Throws kUnavailable where it is missing.
const Crypto& Library() {
  static const Crypto crypto = [] {
    try {
      return Open();
    } catch (const Error& error) {
      throw Error(ErrorCategory::kUnavailable,
                  fmt::format("signatures need OpenSSL's {}, which is missing: {}", kLibrary, error.message()), "",
                  "install the package openssl");
    }
  }();
  return crypto;
}

using Key = std::shared_ptr<KeyObject>;

/// The key in `text`, that of a PEM file. `is_private`: which half is wanted.
Key ReadKey(const std::filesystem::path& file, const std::string& text, bool is_private) {
  const char* half = is_private ? "private" : "public";
  const std::unique_ptr<Bio, int (*)(Bio*)> bio(Library().new_buffer(text.data(), static_cast<int>(text.size())),
                                                Library().free_bio);
  // OpenSSL asks for the password of a private key on the terminal.
  KeyObject* read = bio == nullptr ? nullptr
                    : is_private   ? Library().read_private(bio.get(), nullptr, nullptr, nullptr)
                                   : Library().read_public(bio.get(), nullptr, nullptr, nullptr);
  if (read == nullptr) {
    throw Error(ErrorCategory::kInput, fmt::format("the file holds no {} key in PEM format", half), file.string(),
                is_private ? "openssl genpkey -algorithm ed25519 -out private.pem makes one"
                           : "openssl pkey -in private.pem -pubout -out public.pem writes it");
  }
  Key key(read, Library().free_key);
  if (Library().kind_of(read) == kEd25519) return key;
  throw Error(ErrorCategory::kInput, fmt::format("the {} key is not for Ed25519", half), file.string(),
              "openssl genpkey -algorithm ed25519 -out private.pem makes one that is");
}

class Context {
 public:
  Context() : context_(Library().new_context(), Library().free_context) {
    if (context_ == nullptr) throw Error(ErrorCategory::kResource, "OpenSSL has no memory for a signature");
  }
  DigestContext* get() const { return context_.get(); }

 private:
  std::unique_ptr<DigestContext, void (*)(DigestContext*)> context_;
};

const unsigned char* Bytes(const void* data) { return static_cast<const unsigned char*>(data); }

bool IsRight(const std::string& signature, std::span<const std::byte> bytes, KeyObject* key) {
  const Context context;
  return signature.size() == kSignatureBytes &&
         Library().begin_checking(context.get(), nullptr, nullptr, nullptr, key) == 1 &&
         Library().check(context.get(), Bytes(signature.data()), signature.size(), Bytes(bytes.data()), bytes.size()) ==
             1;
}

/// A process may require one key, for all that it loads.
struct Requirement {
  std::mutex mutex;
  Key key;           ///< null: nothing
  std::string text;  ///< the key's file
};

Requirement& Required() {
  static Requirement required;
  return required;
}

Key RequiredKey() {
  const std::lock_guard lock(Required().mutex);
  return Required().key;
}

}  // namespace

std::filesystem::path SignatureFileOf(const std::filesystem::path& executable) {
  return std::filesystem::path(executable) += ".sig";
}

std::filesystem::path SignFile(const std::filesystem::path& executable, const std::filesystem::path& key) {
  const Key read = ReadKey(key, ReadFile(key), /*is_private=*/true);
  const std::shared_ptr<MappedFile> file = MappedFile::Open(executable);
  const Context context;
  std::array<unsigned char, kSignatureBytes> signature{};
  size_t size = signature.size();
  const bool is_signed =
      Library().begin_signing(context.get(), nullptr, nullptr, nullptr, read.get()) == 1 &&
      Library().sign(context.get(), signature.data(), &size, Bytes(file->bytes().data()), file->bytes().size()) == 1;
  if (!is_signed || size != signature.size()) {
    throw Error(ErrorCategory::kInternal, "OpenSSL did not sign the file", executable.string());
  }
  const std::filesystem::path place = SignatureFileOf(executable);
  WriteWhole(place, {reinterpret_cast<const char*>(signature.data()), signature.size()});
  return place;
}

void RequireSignatures(const std::filesystem::path& key) {
  std::string text = ReadFile(key);
  Key read = ReadKey(key, text, /*is_private=*/false);
  Requirement& required = Required();
  const std::lock_guard lock(required.mutex);
  if (required.key != nullptr && required.text != text) {
    throw Error(ErrorCategory::kInput, "signatures by another key are required already", key.string());
  }
  required.key = std::move(read);
  required.text = std::move(text);
}

void CheckSignature(std::span<const std::byte> bytes, const std::filesystem::path& executable) {
  const Key key = RequiredKey();
  if (key == nullptr) return;
  const std::filesystem::path place = SignatureFileOf(executable);
  if (!std::filesystem::exists(place)) {
    throw Error(ErrorCategory::kInput, fmt::format("a signature is required, and there is no file {}", place.string()),
                executable.string(), "collage sign writes it");
  }
  if (IsRight(ReadFile(place), bytes, key.get())) return;
  throw Error(ErrorCategory::kCorrupt, "the signature is not that of this file by the required key",
              executable.string(), "the file was changed after it was signed, or another key signed it: do not run it");
}

void RefuseUnsigned(const std::string& name) {
  if (RequiredKey() == nullptr) return;
  throw Error(ErrorCategory::kInput, "a signature is required, and bytes in memory have none", name,
              "load the executable from its file");
}

}  // namespace collage
