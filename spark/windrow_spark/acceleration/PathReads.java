package windrow;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Resolves spark.read.parquet(path) and the like without a list of its files, where Python knows the
 * partition columns. It runs before Spark's own resolution, which lists them. Of Spark 4; before, a
 * reader resolves its path outside the analyzer.
 */
public final class PathReads extends Rule {
    private static final Map PREPARED = new WeakHashMap();
    // Of Spark's analyzer: the rules that run first.
    private static final String FIRST_RULES = "hintResolutionRules";

    // Of a stream's sink, whose log is what Spark reads instead of a list.
    private static final String SINK_LOG = "_spark_metadata";

    private final SparkSession session;

    PathReads(Object session) {
        this.session = (SparkSession) session;
    }

    /** Adds the rule to sessions. */
    public static final class Factory {
        /** From now on, a session and those that will share its extensions have the rule. */
        public void extend(SparkSession session) throws Exception {
            synchronized (PREPARED) {
                SparkSessionExtensions extensions = session.extensions();
                if (PREPARED.put(extensions, Boolean.TRUE) == null) {
                    extensions.injectHintResolutionRule(new Builder());
                }
                // Analyzers read the extensions' rules of this kind once, when they are made.
                Object analyzer = session.sessionState().analyzer();
                Field field = firstRules(analyzer.getClass());
                field.setAccessible(true);
                SEQ rules = (SEQ) field.get(analyzer);
                List more = new ArrayList();
                for (int i = 0; i < rules.size(); i++) {
                    if (rules.apply(i) instanceof PathReads) return;
                    more.add(rules.apply(i));
                }
                more.add(new PathReads(session));
                field.set(analyzer, PythonUtils.toSeq(more));
            }
        }

        private static Field firstRules(Class analyzer) throws NoSuchFieldException {
            try {
                return analyzer.getDeclaredField(FIRST_RULES);
            } catch (NoSuchFieldException error) {
                // Spark 4.2.0 gives sessions with Hive no rules of this kind.
                return analyzer.getSuperclass().getDeclaredField(FIRST_RULES);
            }
        }
    }

    private static final class Builder extends AbstractFunction1 {
        @Override
        public Object apply(Object session) {
            return new PathReads(session);
        }
    }

    @Override
    public TreeNode apply(TreeNode plan) {
        if (!AcceleratedReads.isOn()) return plan;
        return ((LogicalPlan) plan).resolveOperatorsUp(new Resolving());
    }

    private final class Resolving extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof UnresolvedDataSource;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            try {
                HadoopFsRelation relation = relation((UnresolvedDataSource) node);
                return relation == null ? node : LogicalRelation$.MODULE$.apply(relation, false);
            } catch (IOException error) {
                return node;
            } catch (RuntimeException error) {
                // Spark resolves the path as ever, and says what is wrong with it.
                return node;
            }
        }
    }

    /** Returns the relation that Spark would make of a path; null if that is not certain. */
    private HadoopFsRelation relation(UnresolvedDataSource source) throws IOException {
        if (source.isStreaming() || source.paths().size() != 1) return null;
        scala.collection.immutable.Map options = source.options().originalMap();
        Path path = new Path((String) source.paths().apply(0));
        if (SparkHadoopUtil.get().isGlobPath(path)) return null;
        FileSystem files = path.getFileSystem(session.sessionState().newHadoopConfWithOptions(options));
        Path root = path.makeQualified(files.getUri(), files.getWorkingDirectory());
        ObjectNode request = AcceleratedReads.request("path");
        request.put("path", OwnWrites.text(root));
        request.put("table", "");
        request.put("format", source.format());
        request.put("in_catalog", false);
        AcceleratedReads.addOptions(request, options);
        Option given = source.userSpecifiedSchema();
        if (given.isDefined()) request.put("schema", ((StructType) given.get()).json());
        AcceleratedReads.addWrites(request, OwnWrites.text(root));
        Object answer = AcceleratedReads.ask(request, new Object[] {session});
        if (!(answer instanceof List)) return null;
        if (files.exists(new Path(root, SINK_LOG))) return null;
        StructType partition = (StructType) ((List) answer).get(0);
        StructType data = (StructType) ((List) answer).get(1);
        FileFormat format = format(source.format());
        if (data == null) {
            FileStatus first = first(files, files.listStatus(root));
            if (first == null) return null;
            List one = new ArrayList();
            one.add(first);
            Option columns = format.inferSchema(session, options, (SEQ) PythonUtils.toSeq(one));
            if (columns.isEmpty()) return null;
            data = (StructType) columns.get();
        }
        PathIndex index = new PathIndex(
            session, root, options, partition, ((Number) ((List) answer).get(2)).longValue());
        return new HadoopFsRelation(
            index, partition.asNullable(), data.asNullable(), Option.empty(), format, options, session);
    }

    /** Returns the format that reads a source's files where Spark does not read them by its V2. */
    private FileFormat format(String name) {
        try {
            Class type = DataSource$.MODULE$.lookupDataSource(name, session.sessionState().conf());
            Object source = type.getConstructor(new Class[0]).newInstance(new Object[0]);
            if (source instanceof FileDataSourceV2) {
                type = ((FileDataSourceV2) source).fallbackFileFormat();
                source = type.getConstructor(new Class[0]).newInstance(new Object[0]);
            }
            return (FileFormat) source;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error.toString());
        }
    }

    /**
     * Returns the file from which Spark takes the columns: the first by its path; null if there is
     * none. Other folders are not listed.
     */
    private static FileStatus first(FileSystem files, FileStatus[] children) throws IOException {
        List shown = new ArrayList();
        for (int i = 0; i < children.length; i++) {
            String name = children[i].getPath().getName();
            if (name.startsWith("_metadata") || name.startsWith("_common_metadata")) {
                throw new IOException("Spark takes the columns from a summary instead");
            }
            boolean hidden = name.startsWith(".") || name.startsWith("_") && name.indexOf('=') < 0
                || name.endsWith("._COPYING_");
            if (!hidden) shown.add(children[i]);
        }
        FileStatus[] ordered = (FileStatus[]) shown.toArray(new FileStatus[shown.size()]);
        Arrays.sort(ordered, new ByPath());
        for (int i = 0; i < ordered.length; i++) {
            if (!ordered[i].isDirectory()) return ordered[i];
            FileStatus first = first(files, files.listStatus(ordered[i].getPath()));
            if (first != null) return first;
        }
        return null;
    }

    /** Orders files and folders as the paths of the files in them. */
    private static final class ByPath implements Comparator {
        @Override
        public int compare(Object one, Object other) {
            return text((FileStatus) one).compareTo(text((FileStatus) other));
        }

        private static String text(FileStatus child) {
            return child.getPath().getName() + (child.isDirectory() ? "/" : "");
        }
    }
}
