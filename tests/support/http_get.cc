// SPDX-License-Identifier: Apache-2.0

#include "tests/support/http_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace cubicml {

HttpResponse HttpGet(int port, absl::string_view path) {
  HttpResponse response;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request =
      absl::StrCat("GET ", path,
                   " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::string text;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    std::array<char, 65536> buffer;
    ssize_t got = 0;
    while ((got = recv(fd, buffer.data(), buffer.size(), 0)) > 0) {
      text.append(buffer.data(), static_cast<size_t>(got));
    }
  }
  close(fd);
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos || text.size() < 12) return response;
  response.head = text.substr(0, end);
  response.body = text.substr(end + 4);
  if (!absl::SimpleAtoi(text.substr(9, 3), &response.code)) response.code = 0;
  return response;
}

}  // namespace cubicml
