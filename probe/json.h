// Just enough JSON to write system.json. No CUDA here.
#pragma once

#include <cstdio>
#include <string>

namespace probe {

inline std::string quoted_json(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\t') {
            out += "\\t";
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", unsigned(c));
            out += code;
        } else {
            out += c;
        }
    }
    return out + "\"";
}

// An object or a list under way.
class Json {
  public:
    explicit Json(char open) : text_(1, open), open_(open) {}
    void value(const std::string& value) {
        text_ += text_.size() > 1 ? ",\n " : "\n ";
        for (char c : value) {
            text_ += c;
            if (c == '\n') text_ += ' ';
        }
    }
    void member(const std::string& name, const std::string& json) {
        value(quoted_json(name) + ": " + json);
    }
    void text(const std::string& name, const std::string& text) { member(name, quoted_json(text)); }
    void flag(const std::string& name, bool flag) { member(name, flag ? "true" : "false"); }
    void number(const std::string& name, double number) {
        char text[32];
        std::snprintf(text, sizeof text, "%.6g", number);
        member(name, text);
    }
    std::string close() {
        const char end = open_ == '{' ? '}' : ']';
        return text_.size() > 1 ? text_ + "\n" + end : text_ + end;
    }

  private:
    std::string text_;
    char open_;
};

}  // namespace probe
