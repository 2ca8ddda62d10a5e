package io.faro.collective;

import java.util.Objects;

/**
 * Settings of a team. Mode, group, seed and {@code slowMembersApart} must be the same at all members. Immutable: each
 * method returns a changed copy.
 */
public final class Settings {
  final Mode mode;
  /** The group size; 0 stands for the square root of the number of members, at least 2. */
  final int group;
  final long seed;
  final NanPolicy nanPolicy;
  final long timeoutMillis;
  final boolean slowMembersApart;

  /** Returns the default settings: the exact mean by a grid, NaN fails, and 60 s for a round. */
  public Settings() {
    this(Mode.GRID, 0, 0, NanPolicy.FAIL, 60_000, false);
  }

  private Settings(
      Mode mode, int group, long seed, NanPolicy nanPolicy, long timeoutMillis, boolean slowMembersApart) {
    this.mode = mode;
    this.group = group;
    this.seed = seed;
    this.nanPolicy = nanPolicy;
    this.timeoutMillis = timeoutMillis;
    this.slowMembersApart = slowMembersApart;
  }

  public Settings mode(Mode value) {
    return new Settings(Objects.requireNonNull(value, "mode"), group, seed, nanPolicy, timeoutMillis, slowMembersApart);
  }

  /**
   * Sets the group size for {@link Mode#DSSYNC}: 2 to the number of members. If it does not divide the number of
   * members, groups are larger by a few, never smaller. 0 stands for about the square root of the number of members.
   */
  public Settings group(int value) {
    if (value < 0 || value == 1) {
      throw new IllegalArgumentException("group is " + value + ", allowed: 2 and more, or 0 to have it chosen");
    }
    return new Settings(mode, value, seed, nanPolicy, timeoutMillis, slowMembersApart);
  }

  /** Sets the seed of the shuffled groups of {@link Mode#DSSYNC}. */
  public Settings seed(long value) {
    return new Settings(mode, group, value, nanPolicy, timeoutMillis, slowMembersApart);
  }

  public Settings nanPolicy(NanPolicy value) {
    return new Settings(mode, group, seed, Objects.requireNonNull(value, "nanPolicy"), timeoutMillis, slowMembersApart);
  }

  /** Sets the maximum time of one round in milliseconds, more than 0. It includes waiting for the slowest member. */
  public Settings timeoutMillis(long value) {
    if (value <= 0) {
      throw new IllegalArgumentException("timeoutMillis is " + value + ", allowed: more than 0");
    }
    return new Settings(mode, group, seed, nanPolicy, value, slowMembersApart);
  }

  /**
   * Sets whether members behind a slow link are kept apart in {@link Mode#DSSYNC}: they go on alone but for one round
   * in eight, until their links are fast again. Costs a round of all members after each eight.
   */
  public Settings slowMembersApart(boolean value) {
    return new Settings(mode, group, seed, nanPolicy, timeoutMillis, value);
  }

  int groupOf(int members) {
    int chosen = group == 0 ? (int) Math.sqrt(members) : group;
    return Math.max(2, chosen);
  }
}
