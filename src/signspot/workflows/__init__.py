"""One function per thing a user asks for; composes the layers above; returns domain types; prints nothing."""
