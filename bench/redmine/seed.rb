# frozen_string_literal: true

# Fills an empty Redmine: default roles and trackers, public projects with issues, journals, a wiki and news. Run in
# Redmine's environment; does nothing the second time.
class Seed
  PROJECTS = 4
  ISSUES = 120
  WORDS = %w[server thread memory page worker request queue cache index ticket version release report chart].freeze

  def call
    return if Project.exists?(identifier: "measured-0")

    Redmine::DefaultData::Loader.load("en") if Redmine::DefaultData::Loader.no_data?
    ActiveRecord::Base.transaction { PROJECTS.times { |number| fill(project(number)) } }
  end

  private

  def author = @author ||= User.where(admin: true).first

  def text(number, words) = Array.new(words) { |count| WORDS[((number * 7) + (count * 3)) % WORDS.size] }.join(" ")

  def project(number)
    project = Project.new(name: "Measured #{number}", identifier: "measured-#{number}", is_public: true,
                          description: text(number, 40))
    project.trackers = Tracker.all.to_a
    project.enabled_module_names = %w[issue_tracking wiki news calendar gantt time_tracking]
    project.save!
    Member.create!(project: project, principal: author, roles: Role.givable.limit(1).to_a)
    project
  end

  def fill(project)
    ISSUES.times { |number| issue(project, number) }
    5.times do |number|
      News.create!(project: project, author: author, title: "News #{number}", description: text(number, 200))
    end
    wiki = project.wiki || Wiki.create!(project: project, start_page: "Wiki")
    page = WikiPage.new(wiki: wiki, title: "Wiki")
    parts = Array.new(60) { |number| "h2. Part #{number}\n\n* #{text(number, 40)}\n" }
    page.content = WikiContent.new(page: page, author: author, text: parts.join("\n"))
    page.save!
  end

  def issue(project, number)
    issue = Issue.create!(project: project, tracker: project.trackers[number % project.trackers.size], author: author,
                          priority: IssuePriority.default || IssuePriority.first,
                          subject: text(number, 6), description: text(number, 80 + (number % 200)),
                          status: IssueStatus.first, start_date: Date.new(2026, 1, 1) + (number % 60))
    3.times do |count|
      Journal.create!(journalized: issue, user: author, notes: text(number + count, 30))
    end
  end
end

Seed.new.call
